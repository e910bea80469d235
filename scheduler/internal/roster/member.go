package roster

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/escapement/escapement/sharding"
)

// States of a member, in Member.State.
const (
	// StateActive is a node that may claim.
	StateActive = "active"
	// StateStandby is a node of a generation that is not the active one.
	StateStandby = "standby"
	// StateDraining is a node that finishes what runs and takes nothing new.
	StateDraining = "draining"
	// StateGone is a node that was not seen for the TTL and that no beat has dropped yet. It is
	// never written; only Members and Look return it.
	StateGone = "gone"
)

const (
	// MaxRecord is the largest member record in bytes of JSON.
	MaxRecord = 64 << 10
	// MaxSet is the largest stored set of named digests in bytes of JSON.
	MaxSet = 1 << 20

	// formatVersion is the version of member records and of sets. Readers leave newer ones alone.
	formatVersion = 1
)

// ErrTooLarge is returned when a member's record or a set of named digests is over
// its limit, MaxRecord or MaxSet. Nothing was written.
var ErrTooLarge = errors.New("too large for the roster")

// Member is one living node, as its record describes it to other nodes.
type Member struct {
	sharding.Node
	// Version of the program, Revision of its build or config, and Generation of
	// the deployed cluster it belongs to.
	Version    string `json:"version,omitempty"`
	Revision   string `json:"revision,omitempty"`
	Generation string `json:"generation,omitempty"`
	// State is StateActive (also when empty), StateStandby or StateDraining.
	State string `json:"state"`
	// Started is when the process began, by its own clock. Stored in milliseconds.
	Started time.Time `json:"started"`
	// OffsetMS is Redis' clock minus the node's wall clock, in milliseconds.
	OffsetMS int64 `json:"offset_ms,omitempty"`
	// UnbelievedMS is Redis' clock minus the node's own idea of it, in milliseconds, while the node
	// does not believe Redis' clock.
	UnbelievedMS int64 `json:"unbelieved_ms,omitempty"`
	// Running is how many slots are taken: runs, and claims and reports that wait for an answer.
	// Jobs is how many jobs the node holds, Owned how many of them it owns.
	Running int `json:"running,omitempty"`
	Jobs    int `json:"jobs,omitempty"`
	Owned   int `json:"owned,omitempty"`
	// Asserted is the id of the Redis to which all runs of the node were asserted, Restored of the
	// one that has restored them all; see scheduler.Config.FailoverHold. On a Cluster they are
	// short digests of the masters, separated by commas. Empty: the node's version asserts nothing.
	Asserted string `json:"told,omitempty"`
	Restored string `json:"placed,omitempty"`
	// Trouble is why the node claims nothing, or not everything, without a drain; at most 200 bytes
	// in one line. It is left out of a record that would be too large with it.
	Trouble string `json:"trouble,omitempty"`
	// Refused is a change of the configuration that the node has refused; nil when it has the
	// newest. Stalled are its runs that have stalled, MaxStalled at most. Both are left out as
	// Trouble is.
	Refused *Refusal `json:"refused,omitempty"`
	Stalled []Stall  `json:"stalled,omitempty"`
	// ZoneData is the version of the node's time zone database.
	ZoneData string `json:"zone_data,omitempty"`
	// Seen is the last beat by Redis' clock. The roster fills it in.
	Seen time.Time `json:"-"`
}

// record is a member as stored in Redis. V comes first, see announce.lua.
type record struct {
	V int `json:"v"`
	Member
}

// encodeMember checks the member and returns its record.
func encodeMember(m Member) ([]byte, error) {
	if m.ID == "" {
		return nil, errors.New("the node's ID is empty; give each process its own, a UUID for instance")
	}
	if !utf8.ValidString(m.ID) {
		return nil, fmt.Errorf("the node's ID %q is not valid UTF-8; use plain text", m.ID)
	}
	switch m.State {
	case "":
		m.State = StateActive
	case StateActive, StateStandby, StateDraining:
	default:
		return nil, fmt.Errorf("the state %q is not known; use %s, %s or %s", m.State, StateActive, StateStandby, StateDraining)
	}
	if m.State == StateDraining {
		m.Draining = true
	}
	m.Started = m.Started.UTC().Truncate(time.Millisecond)
	raw, err := json.Marshal(record{V: formatVersion, Member: m})
	if err != nil {
		return nil, fmt.Errorf("encode the record: %w", err)
	}
	if len(raw) > MaxRecord && (m.Trouble != "" || m.Refused != nil || m.Stalled != nil) {
		return encodeMember(m.withoutNotices())
	}
	if len(raw) > MaxRecord {
		return nil, fmt.Errorf("the record has %d bytes, more than %d; give the node fewer or shorter labels: %w", len(raw), MaxRecord, ErrTooLarge)
	}
	return raw, nil
}

// decodeMember reads a record of this format. It returns false for any other.
func decodeMember(r row) (Member, bool) {
	var rec record
	if json.Unmarshal([]byte(r.raw), &rec) != nil {
		return Member{}, false
	}
	if rec.V != formatVersion || rec.ID != r.id {
		return Member{}, false
	}
	rec.Seen = r.seen
	return rec.Member, true
}
