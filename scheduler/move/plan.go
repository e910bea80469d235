package move

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// Plan lists the contents that a move would copy, and the obstacles.
type Plan struct {
	Namespace string `json:"namespace"`
	From      string `json:"from"`
	To        string `json:"to"`
	// ID is the id of the move under way, "" when there is none.
	ID             string `json:"id"`
	FromPartitions int    `json:"from_partitions"`
	ToPartitions   int    `json:"to_partitions"`

	Jobs    int64 `json:"jobs"`
	Running int64 `json:"running"` // runs in flight, which seal waits for
	Pending int64 `json:"pending"` // runs that are not granted yet
	Ticks   int64 `json:"ticks"`   // open ticks of sharded jobs
	Rows    int64 `json:"rows"`    // of history
	Unique  int64 `json:"unique"`  // keys that are remembered
	Events  int64 `json:"events"`  // for followers, not delivered yet
	Bytes   int64 `json:"bytes"`   // of all records, without Redis' overhead: about half as much again
	Drains  int64 `json:"drains"`  // names that are drained
	// Seconds is roughly how long copy and open take together, while nothing starts: 20 s for a
	// million rows, and more over a slow network between the two Redis.
	Seconds int64 `json:"seconds"`

	// SkewMS is how far the clock of To is ahead of From's, ms.
	SkewMS int64 `json:"skew_ms"`
	// InTheWay are reasons for which seal would refuse; empty when it would not.
	InTheWay []string `json:"in_the_way"`
	// StaysBehind lists the records that are not moved.
	StaysBehind []string `json:"stays_behind"`
}

// rowsPerSecond is how many rows of history are copied in a second, both servers on one machine.
const rowsPerSecond = 50_000

// Plan reads both sides and changes nothing. It reads all records to be copied. It returns
// ledger.ErrNoNamespace when there is nothing to move, ErrRefused when both sides are one, and
// locking.ErrUnreachable.
func (m *Mover) Plan(ctx context.Context) (Plan, error) {
	from, to, err := m.sides(ctx)
	if err != nil {
		return Plan{}, fmt.Errorf("move plan: %w", err)
	}
	p := Plan{Namespace: m.cfg.Namespace, From: from.name, To: to.name, ID: m.under(from, to), FromPartitions: from.led.Partitions(),
		InTheWay: []string{}, StaysBehind: []string{
			"the roster: nodes enter it where they start",
			"locks of business code: their holders have them where they took them",
		}}
	if p.ToPartitions, err = m.partitions(from, to); err != nil {
		p.InTheWay = append(p.InTheWay, err.Error())
	}
	all := export.NewDigest()
	if _, err := export.Documents(ctx, from.led, func(d export.Document) error { all.Add(d); return nil }); err != nil {
		return Plan{}, fmt.Errorf("move plan: %s: %w", from.name, err)
	}
	p.Jobs, p.Pending, p.Ticks, p.Rows, p.Unique, p.Events, p.Bytes = all.Jobs, all.Pending, all.Ticks, all.Rows, all.Unique, all.Events, all.Bytes
	p.Seconds = (p.Rows+rowsPerSecond-1)/rowsPerSecond + 1
	running, err := export.Running(ctx, from.led)
	p.Running = int64(len(running))
	if err != nil && !isUnknownFormat(err) {
		return Plan{}, fmt.Errorf("move plan: %s: %w", from.name, err)
	}
	drains, err := export.Drains(ctx, from.led)
	if err != nil {
		return Plan{}, fmt.Errorf("move plan: %s: %w", from.name, err)
	}
	p.Drains = int64(len(drains))
	skew, err := m.skew(ctx)
	if err != nil {
		return Plan{}, fmt.Errorf("move plan: %w", err)
	}
	p.SkewMS = skew.Milliseconds()
	ways, err := m.obstacles(ctx, from, to)
	if err != nil {
		return Plan{}, fmt.Errorf("move plan: %w", err)
	}
	p.InTheWay = append(p.InTheWay, ways...)
	return p, nil
}

// partitions is the number that the namespace has, or will have, at the other side.
func (m *Mover) partitions(from, to side) (int, error) {
	n := from.led.Partitions()
	if m.cfg.Partitions != 0 {
		n = m.cfg.Partitions
	}
	if to.led == nil {
		return n, nil
	}
	there := to.led.Partitions()
	if m.cfg.Partitions != 0 && n != there {
		return there, refuse("the namespace has, or once had, %d partitions at %s, and nodes may still go by that; set --partitions to %d, or leave it out", there, to.name, there)
	}
	return there, nil
}

// skew is how far the clock of to is ahead of from's.
func (m *Mover) skew(ctx context.Context) (time.Duration, error) {
	var off [2]time.Duration
	for i, s := range []side{{name: m.cfg.FromName, client: m.from}, {name: m.cfg.ToName, client: m.to}} {
		start := time.Now()
		now, _, err := export.TimeOf(ctx, s.client, m.cfg.Namespace)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.name, err)
		}
		off[i] = now.Sub(start.Add(time.Since(start) / 2))
	}
	return off[1] - off[0], nil
}

// clocks refuses servers whose clocks differ by more than MaxSkew.
func (m *Mover) clocks(ctx context.Context) error {
	skew, err := m.skew(ctx)
	if err != nil {
		return err
	}
	ahead := m.cfg.ToName
	if skew < 0 {
		ahead, skew = m.cfg.FromName, -skew
	}
	if skew > m.cfg.MaxSkew {
		return refuse("the clock of %s is %s ahead of the other's, and at most %s is allowed: what is due is kept in Redis' time; mend the clocks, then run this again",
			ahead, skew.Round(time.Millisecond), m.cfg.MaxSkew)
	}
	return nil
}

// obstacles are reasons for which a move cannot begin.
func (m *Mover) obstacles(ctx context.Context, from, to side) ([]string, error) {
	var ways []string
	add := func(format string, args ...any) { ways = append(ways, fmt.Sprintf(format, args...)) }
	id := m.under(from, to)
	if from.notes.Role == ledger.MoveFrom && from.notes.State == ledger.MoveMoved {
		add("the namespace has moved from %s to %s already", from.name, from.notes.Peer)
	}
	if from.notes.Role == ledger.MoveTo && from.notes.State != ledger.MoveOpen {
		add("a move to %s is not complete (%s); run its next step first, see `move status`", from.name, from.notes.State)
	}
	if from.control.Promoting != "" {
		add("a promotion goes on; finish it with `generations promote`")
	}
	if err := m.clocks(ctx); isRefused(err) {
		add("%v", err)
	} else if err != nil {
		return nil, err
	}
	left, err := m.strange(ctx, from)
	if err != nil {
		return nil, err
	}
	ways = append(ways, left...)
	if to.led == nil {
		keys, err := query.Leftovers(ctx, m.to, m.cfg.Namespace)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", to.name, err)
		}
		if len(keys) > 0 {
			add("%s has keys of a namespace %q without its control record, %s for one; delete them, or move elsewhere", to.name, m.cfg.Namespace, keys[0])
		}
		return ways, nil
	}
	switch n := to.notes; {
	case id != "" && n.ID == id && n.Role == ledger.MoveTo: // this one's
	case n.Role == ledger.MoveTo && n.State == ledger.MoveBurnt:
	case m.back(from, to) != "":
	case n.Role == ledger.MoveTo && n.State == ledger.MoveFilling:
		add("another move, from %s, fills %s; finish or abort that one", n.Peer, to.name)
	default:
		add("%s has a namespace %q of its own; move to an empty Redis, or database", to.name, m.cfg.Namespace)
	}
	return ways, nil
}

// back returns the id of the move by which the namespace went from to to from, "" when there was
// none: this move brings it back.
func (m *Mover) back(from, to side) string {
	if to.notes.Role == ledger.MoveFrom && to.notes.State == ledger.MoveMoved && from.state(ledger.MoveTo, to.notes.ID) == ledger.MoveOpen {
		return to.notes.ID
	}
	return ""
}

// strange names records that could not be moved because this version cannot read them, ten at most.
func (m *Mover) strange(ctx context.Context, from side) ([]string, error) {
	found, err := query.UnknownKeys(ctx, from.led)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from.name, err)
	}
	left, err := export.Documents(ctx, from.led, func(export.Document) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from.name, err)
	}
	if _, err := export.Running(ctx, from.led); isUnknownFormat(err) {
		left = append(left, query.UnknownFormat{What: err.Error()})
	}
	return describe(append(found, left...)), nil
}

func describe(left []query.UnknownFormat) []string {
	var words []string
	for i, s := range left {
		if i == 10 {
			words = append(words, fmt.Sprintf("and %d more that this version does not understand", len(left)-i))
			break
		}
		words = append(words, strings.TrimSpace(s.Key+": ")+" "+s.What+"; move it with the version that wrote it, or delete it")
	}
	return words
}

// newID makes the id of a move: later than every recorded move of either side, and than both
// clocks.
func (m *Mover) newID(ctx context.Context, from, to side) (string, error) {
	at := int64(0)
	for _, s := range []side{from, to} {
		now, _, err := export.TimeOf(ctx, s.client, m.cfg.Namespace)
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.name, err)
		}
		at = max(at, now.UnixMilli())
		for _, known := range []string{s.notes.ID, s.notes.Undone} {
			if u, err := uuid.Parse(known); err == nil {
				at = max(at, int64(binary.BigEndian.Uint64(u[:8])>>16)+1)
			}
		}
	}
	u, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], uint64(at)<<16)
	copy(u[:6], head[:6])
	return u.String(), nil
}
