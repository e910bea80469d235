package zklock

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/escapement/escapement/locking"
)

const (
	heldPrefix = "held-" // of the holder's node
	waitPrefix = "wait-" // of a waiter's node
	// waitEnd separates a waiter's owner value from the number that ZooKeeper appends. An escaped owner has none.
	waitEnd = "!"
)

// lockPath is the node of a lock. Escaped, a name is one element of a path.
func (d *Driver) lockPath(name string) string { return d.root + "/lock-" + url.PathEscape(name) }

func (d *Driver) heldPath(name, owner string) string {
	return d.lockPath(name) + "/" + heldPrefix + url.PathEscape(owner)
}

func waitName(owner string) string { return waitPrefix + url.PathEscape(owner) + waitEnd }

// place is a waiter's node.
type place struct {
	node   string // its name
	owner  string
	number int32
}

// readPlace parses the name of a waiter's node.
func readPlace(node string) (place, bool) {
	escaped, digits, ok := strings.Cut(strings.TrimPrefix(node, waitPrefix), waitEnd)
	owner, err := url.PathUnescape(escaped)
	number, bad := strconv.ParseInt(digits, 10, 32)
	return place{node, owner, int32(number)}, ok && err == nil && bad == nil && strings.HasPrefix(node, waitPrefix)
}

// view is a lock as the children of its node show it.
type view struct {
	exists  bool
	version int32    // of the lock's node: it changes with each grant
	created int64    // czxid of the lock's node: it changes when the container was removed and is made anew
	holders []string // the owner values. More than one: all but the first to be granted withdraw, see acquisition.take
	queue   []place  // first comes first
}

func (v view) held() bool { return len(v.holders) > 0 }

// readView ignores nodes with names of another kind.
func readView(children []string, lock *zk.Stat) view {
	v := view{exists: true, version: lock.Version, created: lock.Czxid}
	slices.Sort(children)
	for _, node := range children {
		if escaped, ok := strings.CutPrefix(node, heldPrefix); ok {
			if owner, err := url.PathUnescape(escaped); err == nil {
				v.holders = append(v.holders, owner)
			}
		} else if p, ok := readPlace(node); ok {
			v.queue = append(v.queue, p)
		}
	}
	// The numbers have 32 bits and start again below zero; the numbers of one moment are close
	// together.
	slices.SortFunc(v.queue, func(a, b place) int { return cmp.Compare(a.number-b.number, 0) })
	return v
}

// placeOf returns the owner's place in the queue, 1 being next; 0: none.
func (v view) placeOf(owner string) int {
	return 1 + slices.IndexFunc(v.queue, func(p place) bool { return p.owner == owner })
}

// record is the data of a holder's node.
type record struct {
	Holder  string        `json:"holder,omitempty"` // locking.Options.Holder
	TTL     time.Duration `json:"ttl"`
	Delay   time.Duration `json:"delay,omitempty"`
	Base    int64         `json:"base"` // the token is Base and the node's czxid
	Revoked bool          `json:"revoked,omitempty"`
}

func (r record) encode() []byte {
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // no type in it can fail
	}
	return data
}

// readRecord returns the zero record for data of another kind.
func readRecord(data []byte) (r record) {
	if json.Unmarshal(data, &r) != nil {
		return record{}
	}
	return r
}

func (r record) token(s *zk.Stat) locking.Token { return r.Base + s.Czxid }

// left returns how long the lease lasts unless it is renewed, as far as the clocks here and at
// ZooKeeper agree; 0: not known. Only the time of the next request depends on it.
func (r record) left(s *zk.Stat) time.Duration {
	whole := r.TTL + r.Delay
	return max(min(time.Until(time.UnixMilli(s.Mtime).Add(whole)), whole), 0)
}
