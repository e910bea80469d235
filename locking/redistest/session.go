package redistest

import (
	"bufio"
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Session is one client of an embedded server, without a connection: each command is carried out in
// the caller's goroutine. A simulation that carries messages itself uses a Session instead of a
// dialer, so that the server does one thing at a time, in the simulation's order. A Session is not
// safe for concurrent use; nor are two sessions of one server if the order is to be fixed.
type Session struct {
	server *server.Server
	peer   *server.Peer
	reply  *bytes.Buffer
}

// Session returns a new session. Restart ends it.
func (e *Embedded) Session() *Session {
	s := &Session{server: e.mini.Server(), reply: new(bytes.Buffer)}
	s.peer = server.NewPeer(bufio.NewWriter(s.reply))
	return s
}

// Do carries out one command, its name first, and returns the reply as it goes over the wire.
func (s *Session) Do(args []string) []byte {
	s.reply.Reset()
	s.server.Dispatch(s.peer, args)
	s.peer.Flush()
	return bytes.Clone(s.reply.Bytes())
}

// StepClock moves the answer of TIME by d, for clients and for scripts. It moves nothing else: a
// time to live goes by the true clock.
func (e *Embedded) StepClock(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clockOff += d
}

// Snapshot is a copy of everything an embedded server held at one moment.
type Snapshot struct {
	keys map[string]keep
}

// keep is the value of one key; one of the fields besides ttl is set.
type keep struct {
	text *string
	hash map[string]string
	list []string
	zset map[string]float64
	ttl  time.Duration
}

// Snapshot copies all keys: strings, hashes, lists and sorted sets. It panics at a key of another
// kind, which this module does not write.
func (e *Embedded) Snapshot() Snapshot {
	s := Snapshot{keys: make(map[string]keep)}
	for _, key := range e.mini.Keys() {
		s.keys[key] = copyKey(e.mini, key)
	}
	return s
}

func copyKey(m *miniredis.Miniredis, key string) keep {
	k := keep{ttl: m.TTL(key)}
	switch kind := m.DB(0).Type(key); kind {
	case "string":
		text, _ := m.Get(key) // its kind was read above
		k.text = &text
	case "hash":
		fields, _ := m.HKeys(key)
		k.hash = make(map[string]string, len(fields))
		for _, f := range fields {
			k.hash[f] = m.HGet(key, f)
		}
	case "list":
		list, _ := m.List(key)
		k.list = slices.Clone(list)
	case "zset":
		set, _ := m.SortedSet(key)
		k.zset = maps.Clone(set) // it is miniredis' own
	default:
		panic("redistest: a snapshot of key " + key + ", which is a " + kind + ", is not possible")
	}
	return k
}

// Restore gives the server the data of the snapshot, as after a failover to a replica that had not
// got the last writes. The run_id and the scripts are left alone.
func (e *Embedded) Restore(s Snapshot) {
	m := e.mini
	m.FlushAll()
	for key, k := range s.keys {
		k.put(m, key)
	}
}

func (k keep) put(m *miniredis.Miniredis, key string) {
	switch {
	case k.text != nil:
		_ = m.Set(key, *k.text) // an error would mean another kind of key, but there is none
	case k.hash != nil:
		for f, v := range k.hash {
			m.HSet(key, f, v)
		}
	case k.list != nil:
		_, _ = m.Push(key, k.list...)
	default:
		for member, score := range k.zset {
			_, _ = m.ZAdd(key, score, member)
		}
	}
	if k.ttl > 0 {
		m.SetTTL(key, k.ttl)
	}
}
