package generations

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/sharding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// namespace is a ledger and a roster without nodes.
type namespace struct {
	*testing.T
	server *redistest.Embedded
	client *redis.Client
	led    *ledger.Ledger
	nodes  *roster.Roster
}

// stage makes a namespace whose generation one is active and has the jobs stays, changes, moves and
// leaves. Generation two is on standby: it changes one, moves one, and has comes in place of leaves.
func stage(t *testing.T) *namespace {
	t.Helper()
	server, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	n := &namespace{T: t, server: server, client: server.Client()}
	t.Cleanup(func() { _ = n.client.Close(); server.Close() })
	if n.led, err = ledger.Join(t.Context(), n.client, ledger.Config{MaxSkew: time.Second, Generation: "one", Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	n.nodes = roster.New(n.client, roster.Config{TTL: cluster.RosterTTL})
	stays := jobs.Job{Name: "stays", Schedule: "@hourly"}
	changed, moved := jobs.Job{Name: "changes", Schedule: "@hourly"}, jobs.Job{Name: "moves", Schedule: "@hourly"}
	old := []jobs.Job{stays, changed, moved, {Name: "leaves", Schedule: "@hourly"}}
	changed.TTL, moved.Schedule = time.Minute, "@daily"
	n.holds("a1", "one", n.define("one", true, old...))
	n.holds("b1", "two", n.define("two", false, stays, changed, moved, jobs.Job{Name: "comes", Schedule: "@hourly"}))
	return n
}

// define stores the definitions of a generation, and registers the jobs where it is the active one.
// It returns the digests by job.
func (n *namespace) define(generation string, active bool, list ...jobs.Job) map[string]string {
	n.Helper()
	held, now := make(map[string]string), time.Now().UnixMilli()
	for _, j := range list {
		d := j.WithDefaults(jobs.Defaults{}).Definition()
		d.Generation = generation
		text, err := json.Marshal(d)
		if err != nil {
			n.Fatal(err)
		}
		held[j.Name] = d.Digest()
		if active {
			_, err = define.Define(n.Context(), n.led, now, []define.Definition{{Job: j.Name, Digest: d.Digest(), Generation: generation, Text: text, Cursor: now + time.Hour.Milliseconds()}})
		} else {
			err = define.Store(n.Context(), n.led, n.led.Partition(j.Name), []string{d.Digest()}, func(string) ([]byte, error) { return text, nil })
		}
		if err != nil {
			n.Fatal(err)
		}
	}
	return held
}

// holds lets a living node hold definitions, and announce them.
func (n *namespace) holds(name, generation string, held map[string]string) {
	n.Helper()
	refs := make(map[string]string)
	for _, chunks := range define.Chunks(n.led, held) {
		for _, c := range chunks {
			refs[fmt.Sprintf("%d/%d/%d", c.Part, c.Of, c.Place)] = c.Digest
		}
		if len(chunks) == 0 {
			continue
		}
		if err := define.Announce(n.Context(), n.led, generation, "r1", chunks); err != nil {
			n.Fatal(err)
		}
	}
	set := roster.SetDigest(refs)
	_, err := n.nodes.Beat(n.Context(), roster.Member{Node: sharding.Node{ID: name, Name: name, Set: set}, Generation: generation, State: roster.StateActive, Jobs: len(held)})
	if err = errors.Join(err, n.nodes.Announce(n.Context(), set, refs)); err != nil {
		n.Fatal(err)
	}
}

func (n *namespace) known() *Known {
	n.Helper()
	k, err := Read(n.Context(), n.led, n.nodes)
	if err != nil {
		n.Fatal(err)
	}
	return k
}

// promote promotes a generation, and describes the result.
func (n *namespace) promote(name string, o Options) string {
	n.Helper()
	p, err := Promote(n.Context(), n.led, n.nodes, name, o)
	if err != nil {
		n.Fatal(err)
	}
	return fmt.Sprintf("was %s, epoch %d, resumed %t, switched %v, created %v, orphaned %v, left out %v", p.Was, p.Epoch, p.Resumed, p.Switched, p.Created, p.Orphaned, p.LeftOut)
}

func (n *namespace) want(what, got, want string) {
	n.Helper()
	if got != want {
		n.Errorf("%s: %s\nwant %s", what, got, want)
	}
}

// The changes of a promotion are known before the promotion.
func TestCompare(t *testing.T) {
	n := stage(t)
	k := n.known()
	words := func(name string) string {
		c := k.Compare(name)
		var others []string
		for _, o := range c.Others {
			others = append(others, fmt.Sprint(o.Job, o.Settings(), o.Rescheduled()))
		}
		return fmt.Sprintf("%v %d of %d, added %v, removed %v, unsettled %v, others %v", k.Nodes(name), c.Running, c.Jobs, c.Added, c.Removed, c.Unsettled, others)
	}
	n.want("names", strings.Join(k.Names(), " "), "one two")
	n.want("active", words("one"), "[a1] 4 of 4, added [], removed [], unsettled [], others []")
	n.want("standby", words("two"), "[b1] 0 of 4, added [comes], removed [leaves], unsettled [], others [changes[ttl] false moves[] true stays[] false]")
	n.client.HDel(t.Context(), "{escapement:"+fmt.Sprint(n.led.Partition("comes"))+"}:defs", k.of["two"].kept["comes"].Digest)
	k = n.known()
	n.want("a definition is not stored yet", words("two"), "[b1] 0 of 4, added [], removed [leaves], unsettled [comes], others [changes[ttl] false moves[] true stays[] false]")
}

// A promotion of all jobs, again, and back; of some jobs; and of a generation that has ended.
func TestPromote(t *testing.T) {
	n := stage(t)
	n.want("some", n.promote("two", Options{Pattern: "[cs]*s"}), "was one, epoch 1, resumed false, switched [changes stays], created [comes], orphaned [], left out []")
	n.want("the same again", n.promote("two", Options{Pattern: "[cs]*s"}), "was one, epoch 1, resumed false, switched [], created [], orphaned [], left out []")
	n.want("all", n.promote("two", Options{}), "was one, epoch 2, resumed false, switched [moves], created [], orphaned [leaves], left out []")
	n.want("all again", n.promote("two", Options{}), "was two, epoch 2, resumed false, switched [], created [], orphaned [], left out []")
	if c := n.known().Control; c.Generation != "two" || c.Promoting != "" {
		t.Errorf("%+v", c)
	}
	n.want("back", n.promote("one", Options{}), "was two, epoch 3, resumed false, switched [changes leaves moves stays], created [], orphaned [comes], left out []")
	if err := n.nodes.Leave(t.Context(), "b1"); err != nil {
		t.Fatal(err)
	}
	n.want("its nodes have ended", n.promote("two", Options{Force: true}), "was one, epoch 4, resumed false, switched [changes comes moves stays], created [], orphaned [leaves], left out []")
}

// A promotion that was interrupted is completed by the same call, and replaced by another one.
func TestInterrupted(t *testing.T) {
	for name, raised := range map[string]bool{"begun": false, "raised": true} {
		t.Run(name, func(t *testing.T) {
			begin := func(n *namespace) {
				p, err := define.Begin(t.Context(), n.led, ledger.Promotion{Generation: "two"})
				if err == nil && raised {
					err = define.Raise(t.Context(), n.led, p)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			n := stage(t)
			begin(n)
			n.want("again", n.promote("two", Options{}), "was two, epoch 1, resumed true, switched [changes moves stays], created [comes], orphaned [leaves], left out []")
			n = stage(t)
			begin(n)
			n.want("another", n.promote("one", Options{}), "was two, epoch 2, resumed false, switched [], created [], orphaned [], left out []")
			if c := n.known().Control; c.Generation != "one" || c.Promoting != "" {
				t.Errorf("%+v", c)
			}
		})
	}
}

// Each reason to refuse a promotion names the next step, and nothing changes.
func TestPromoteRefuses(t *testing.T) {
	for words, x := range map[string]struct {
		generation string
		o          Options
		edit       func(n *namespace)
	}{
		`there are "one", "two"`:                    {generation: "three"},
		"start a node of it first":                  {generation: "three", o: Options{Force: true}},
		`the pattern "job-[" is none`:               {generation: "two", o: Options{Pattern: "job-["}},
		`the pattern "a|b" is none`:                 {generation: "two", o: Options{Pattern: "a|b"}},
		"no job matches zzz*":                       {generation: "two", o: Options{Pattern: "zzz*"}},
		"it has no job that matches leaves":         {generation: "two", o: Options{Pattern: "leaves", Force: true}},
		"no node of it is alive":                    {generation: "two", edit: func(n *namespace) { _ = n.nodes.Leave(n.Context(), "b1") }},
		"what 1 of its 1 nodes have cannot be read": {generation: "two", edit: func(n *namespace) { n.client.Del(n.Context(), "{escapement}:sets") }},
		"elsewhere:1": {generation: "two", edit: func(n *namespace) {
			n.client.Set(n.Context(), "{escapement:1}:gate", "1|0|one|sealed|m1|elsewhere:1", 0)
		}},
		"have not said yet how they would run x": {generation: "two", edit: func(n *namespace) {
			held := n.define("two", false, jobs.Job{Name: "x", Schedule: "@hourly"})
			n.holds("b2", "two", held)
			n.client.HDel(n.Context(), fmt.Sprintf("{escapement:%d}:defs", n.led.Partition("x")), held["x"])
		}},
	} {
		n := stage(t)
		if x.edit != nil {
			x.edit(n)
		}
		before := n.server.Mini().Dump()
		p, err := Promote(t.Context(), n.led, n.nodes, x.generation, x.o)
		if !errors.Is(err, ledger.ErrRefused) || !strings.Contains(err.Error(), words) || len(p.Switched) > 0 {
			t.Errorf("%+v, %v; want %s", p, err, words)
		}
		if n.server.Mini().Dump() != before {
			t.Errorf("%s: the refusal has changed records", words)
		}
	}
}

// The instants that only one of two schedules has.
func TestApart(t *testing.T) {
	parsed := func(text string) *jobs.Schedule {
		s, err := jobs.Job{Name: "a", Schedule: text}.ParsedSchedule()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	from := time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC)
	a, b := Apart(parsed("0 * * * *"), parsed("0 */2 * * *"), from, from.Add(24*time.Hour), 2)
	if len(b) != 0 || !slices.Equal(a, []time.Time{from.Add(30 * time.Minute), from.Add(150 * time.Minute)}) {
		t.Errorf("%v, %v", a, b)
	}
	if a, b = Apart(nil, parsed("0 * * * *"), from, from.Add(time.Hour), 2); len(a) != 0 || len(b) != 1 {
		t.Errorf("%v, %v", a, b)
	}
}
