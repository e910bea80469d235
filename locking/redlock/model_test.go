package redlock

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

var inModel = Config{Namespace: "m"}

// follower gives the scripts at one server and the model the same operations.
type follower struct {
	tb     testing.TB
	client *redis.Client
	driver driver
	model  *simMaster
	rng    *rand.Rand
}

// TestScriptsFollowModel gives the scripts, on both servers, and the model of the
// simulation the same random operations, and compares every answer.
func TestScriptsFollowModel(t *testing.T) {
	_, emb := redistest.StartEmbedded(t)
	for where, client := range map[string]*redis.Client{"redis-server": redistest.Start(t).Client(t), "embedded": emb} {
		f := &follower{t, client, driver{cfg: inModel}, newSimMaster(), rand.New(rand.NewPCG(9, 9))}
		f.nodeWith(f.node().loss, 0, 60000)
		answers := make(map[string]int)
		for i := range 2000 {
			what, got, want := f.step(i)
			n := f.node()
			got += fmt.Sprint(" ", n.loss == "", n.largest)
			want += fmt.Sprint(" ", f.model.votes(), f.model.largest)
			if got != want {
				t.Fatalf("%s, step %d, %s: got %s; the model says %s", where, i, what, got, want)
			}
			answers[what]++
		}
		t.Logf("%s: steps that agree: %v", where, answers)
		for _, what := range []string{"renew 1", "renew 2", "renew 0", "renew -1", "second renew 1", "second renew 0", "second renew -1", "second renew 4", "raise 1", "release 1", "release 0", "acquire 0", "acquire 1", "acquire 2", "acquire 4", "rejoin 0"} {
			if answers[what] == 0 {
				t.Errorf("%s: no %s", where, what)
			}
		}
	}
}

func (f *follower) node() node {
	f.tb.Helper()
	return f.nodeWith()
}

// nodeWith calls node.lua with its arguments.
func (f *follower) nodeWith(args ...any) node {
	f.tb.Helper()
	n, err := f.driver.node(f.tb.Context(), &master{client: f.client}, args...)
	if err != nil {
		f.tb.Fatal(err)
	}
	return n
}

// run calls a script for the lock with those keys.
func (f *follower) run(s *redisconn.Script, keys []string, args ...any) int {
	f.tb.Helper()
	code, err := s.Run(f.tb.Context(), f.client, keys, args...).Int()
	if err != nil {
		f.tb.Fatal(err)
	}
	return code
}

// step does one operation, and returns its description, and the answers of the script and of the
// model.
func (f *follower) step(i int) (what, got, want string) {
	name, owner := f.rng.IntN(2), "owner"+string(rune('a'+f.rng.IntN(3)))
	keys := inModel.keys("lock" + string(rune('a'+name)))
	l := &f.model.locks[name]
	near := max(l.token+locking.Token(f.rng.IntN(5)-2), 1)
	number := max(i-f.rng.IntN(8), 0)
	var code, wants int
	switch kind := f.rng.IntN(40); {
	case kind < 12:
		return f.acquire(keys, simAsk{name: name, owner: owner, attempt: number, ttl: never, hint: locking.Token(i*2 + f.rng.IntN(100))})
	case kind < 16: // requests a larger token
		return f.acquire(keys, simAsk{name: name, owner: owner, attempt: number, ttl: never, after: near})
	case kind < 29:
		q := simRenew{name: name, owner: owner, token: near, number: number, until: never}
		if what = "renew"; kind >= 22 {
			what, q.seen = "second renew", int(f.model.counter(l))-f.rng.IntN(2)
		}
		code, wants = f.run(renewScript, keys, owner, near, 60000, stateKeep, q.number, q.seen), f.model.renew(q, 0, rules{})
		if code < 0 && code == wants {
			code, wants = -1, -1 // less to count
		}
	case kind < 35:
		release := kind < 31
		what, code = "release", f.run(releaseScript, keys, owner, number, release, stateKeep)
		wants = f.model.release(name, owner, number, release, 0)
	case kind < 38:
		what = "lapse"
		f.client.Del(f.tb.Context(), keys[0])
		l.free()
	case kind == 38: // emptied: the marker goes, and with it the vote
		what = "empty"
		f.client.FlushAll(f.tb.Context())
		f.model.restartEmpty(0, 0, rules{})
	default:
		what = "rejoin"
		if !f.model.votes() {
			f.nodeWith("1:another loss", i, 60000)
			f.nodeWith(f.node().loss, i, 60000)
			f.model.voting, f.model.largest = f.model.life, max(f.model.largest, locking.Token(i))
		}
	}
	return fmt.Sprint(what, " ", code), fmt.Sprint(code), fmt.Sprint(wants)
}

func (f *follower) acquire(keys []string, q simAsk) (what, got, want string) {
	f.tb.Helper()
	if f.rng.IntN(4) == 0 {
		q.from = f.model.locks[q.name].token
	}
	reply, err := acquireScript.Run(f.tb.Context(), f.client, keys, q.owner, 60000, q.attempt, q.hint, q.after, q.from, "", stateKeep, 60000).Slice()
	if err != nil {
		f.tb.Fatal(err)
	}
	p, err := readPromise(reply)
	if err != nil {
		f.tb.Fatal(err)
	}
	w, owner := f.model.promise(q, rules{}), ""
	if p.code == codeHeld {
		owner = p.held.owner
	}
	what = "acquire "
	if q.after > 0 {
		what = "raise "
	}
	return fmt.Sprint(what, p.code), fmt.Sprint(p.code, p.token, owner), fmt.Sprint(w.code, w.token, w.held.owner)
}
