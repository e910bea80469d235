package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Redis with nodes, in virtual time.
type world struct {
	t      *testing.T
	redis  *redistest.Embedded
	client *redis.Client
	nodes  []*node
}

// node is a node's side of the cluster. Its lanes reach Redis, and its agenda has ended.
type node struct {
	*Cluster
	t    *testing.T
	led  *ledger.Ledger
	stop func()

	mu      sync.Mutex
	log     strings.Builder
	cursors map[string]int64 // of the registered jobs
	failed  error            // of the last call of a role
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		var err error
		if w.redis, err = redistest.Embed(); err != nil {
			t.Fatal(err)
		}
		w.client = w.redis.Client()
		defer func() {
			for _, n := range w.nodes {
				n.stop()
			}
			_ = w.client.Close()
			time.Sleep(2 * time.Second) // go-redis may be about to dial once more
			w.redis.Close()
		}()
		test(t, w)
	})
}

// add starts a node of a generation and a revision that has these jobs.
func (w *world) add(id, generation, revision string, own ...jobs.Job) *node {
	w.t.Helper()
	led, err := ledger.Join(w.t.Context(), w.client, ledger.Config{MaxSkew: time.Second, Generation: generation})
	if err != nil {
		w.t.Fatal(err)
	}
	var list []*work.Job
	for _, j := range own {
		schedule, err := j.ParsedSchedule()
		if err != nil {
			w.t.Fatal(err)
		}
		d := j.Definition()
		d.Generation = generation
		list = append(list, &work.Job{Job: j, Schedule: schedule, Def: d, Digest: d.Digest(), Part: led.Partition(j.Name)})
	}
	n := &node{t: w.t, led: led, cursors: map[string]int64{}}
	log, all := slog.New(slog.NewTextHandler(n, nil)), work.NewJobs(list, revision)
	moves := NewMoves(MovesConfig{Client: w.client, Namespace: "escapement", Name: id, Jobs: all, Log: log})
	state, slots := &NodeState{}, agenda.NewSlots(4)
	inbox := agenda.NewInbox(slots)
	over, cancel := context.WithCancel(w.t.Context())
	cancel()
	agenda.New(agenda.Config{Jobs: work.NewJobs(nil, ""), Inbox: inbox, Slots: slots, Clock: n, Lanes: n}).Run(over)
	n.Cluster = New(Config{
		ID: id, Name: id, Namespace: "escapement", Generation: generation, Weight: 1, Grace: 500 * time.Millisecond, DrainTimeout: time.Minute,
		FailoverHold: 3 * time.Second, Wall: time.Now, Ledger: led, Roster: roster.New(w.client, roster.Config{TTL: RosterTTL}), Lanes: n, Clock: n,
		Health: n, Jobs: all, Slots: slots, Inbox: inbox, Moves: moves, Record: NewControlRecord(led, moves, state, generation), View: &LatestView{},
		State: state, Stalled: func() []roster.Stall { return nil }, Beat: make(chan struct{}, 1), Lost: make(chan struct{}, 1), Log: log,
	})
	if err := n.Join(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.Attend(ctx) })
	running.Go(func() { n.Register(ctx) })
	n.stop = func() { end(); running.Wait() }
	w.nodes = append(w.nodes, n)
	return n
}

func (n *node) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.Write(p)
}

func (n *node) logged() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

// The node's lanes, clock and health.
func (n *node) At(_ string, _ int, call func() error) error { return call() }
func (n *node) Registered(j *work.Job, cursor int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cursors[j.Name] = cursor
}
func (n *node) Displaced(j *work.Job) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.cursors, j.Name)
}
func (n *node) has(job string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, has := n.cursors[job]
	return has
}
func (n *node) Resample(context.Context)                        {}
func (n *node) MarkUnreachable(string, error, []int)            {}
func (n *node) Beaten(err error)                                { n.note(err) }
func (n *node) Changes() int                                    { return 0 }
func (n *node) Err() error                                      { return nil }
func (n *node) Held() bool                                      { return false }
func (n *node) Holding() error                                  { return nil }
func (n *node) Recheck()                                        {}
func (n *node) Seen([]roster.Member, []sharding.Node)           {}
func (n *node) Servers() (asserted, restored string)            { return "", "" }
func (n *node) Unreachable() bool                               { return false }
func (n *node) Overdue(_ int, late time.Duration) time.Duration { return late }
func (n *node) Now() time.Time                                  { return time.Now() }
func (n *node) Past() time.Time                                 { return time.Now() }
func (n *node) Usable() error                                   { return nil }
func (n *node) Claim(*work.Batch)                               {}
func (n *node) Sweep(int)                                       {}
func (n *node) Blocked(int) bool                                { return false }
func (n *node) Ahead() time.Duration                            { return 0 }
func (n *node) Unbelieved() time.Duration                       { return 0 }
func (n *node) OK(string)                                       {}
func (n *node) Fail(_ string, err error)                        { n.note(err) }
func (n *node) note(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed = errors.Join(err)
}

// owns counts the jobs that a node owns.
func (n *node) owns() int { return int(n.State.Owned.Load()) }

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for range 1200 {
		if synctest.Wait(); is() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatalf("not so within two minutes: %s; the logs:\n%s", what, func() (all string) {
		for _, n := range w.nodes {
			all += n.ID + ":\n" + n.logged() + fmt.Sprintln(n.failed)
		}
		return all
	}())
}

func someJobs(n int) (list []jobs.Job) {
	for i := range n {
		list = append(list, jobs.Job{Name: fmt.Sprint("job-", i), Schedule: "* * * * *"})
	}
	return list
}

// TestTwoNodes: two nodes share the jobs. A node that is drained, or leaves, hands its share over, and gets it back.
func TestTwoNodes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.add("a", "", "v1", someJobs(8)...)
		w.eventually("all jobs are registered", func() bool { return a.State.Registered.Load() && a.has("job-7") && a.owns() == 8 })
		b := w.add("b", "", "v1", someJobs(8)...)
		w.eventually("each node has a half", func() bool { return a.owns() == 4 && b.owns() == 4 })
		for _, j := range a.Jobs.All() {
			if other := b.Jobs.Named(j.Name); a.View.Owns(j) == b.View.Owns(other) && time.Now().After(a.heartbeat.handOffUntil) {
				t.Errorf("both nodes, or none, go first for %s", j.Name)
			}
		}
		if a.DrainReason() != nil {
			t.Error(a.DrainReason())
		}
		if err := a.Roster.Drain(t.Context(), "a", roster.Drained{Author: "ann", Reason: "disk"}); err != nil {
			t.Fatal(err)
		}
		w.eventually("a is drained", func() bool { return a.State.Drain.Load() != nil && b.owns() == 8 })
		if err := a.DrainReason(); err == nil || !strings.Contains(err.Error(), "drained by ann: disk") {
			t.Error(err)
		}
		if _, err := a.Roster.Resume(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		w.eventually("a has its half again", func() bool { return a.owns() == 4 && a.State.Drain.Load() == nil })
		a.HandOver()
		a.stop()
		a.Leave(t.Context())
		w.eventually("b has all", func() bool { return b.owns() == 8 })
		twin := w.add("b2", "", "v1", someJobs(8)...)
		if twin.heartbeat.warnSameName([]sharding.Node{{ID: "x", Name: "b2"}}); !strings.Contains(twin.logged(), "another node has the same name") {
			t.Error(twin.logged())
		}
	})
}

// TestTakeoverOrder: which node may take late work, and when.
func TestTakeoverOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		own := someJobs(4)
		a, b := w.add("a", "", "v1", own...), w.add("b", "", "v1", own...)
		w.eventually("each node has a share", func() bool { return a.owns() > 0 && b.owns() > 0 && a.owns()+b.owns() == 4 })
		j := a.Jobs.Named("job-0")
		o := a.TakeoverOrder()
		if !o.Tick(j, true, 0) || o.Tick(j, false, a.Grace-1) || !o.Tick(j, false, a.Grace+takeoverEvery) || !o.Shard(j, 1, false, a.Grace+takeoverEvery) {
			t.Error("the owner takes a tick at once, the other nodes after the grace, by their rank")
		}
		a.State.Drain.Store(&roster.Drained{})
		if o.Tick(j, false, time.Hour) || !o.Tick(j, true, 0) {
			t.Error("a drained node takes only its own ticks")
		}
		a.State.Drain.Store(nil)
		if other := *j; len(other.Labels) == 0 {
			other.Labels = map[string]string{"disk": "fast"}
			if o.Tick(&other, false, time.Hour) {
				t.Error("a node without a job's labels takes it")
			}
		}
	})
}

// TestRevisions: a newer definition replaces the stored one, the older one's node yields, and counts again when the newer one's node has left.
func TestRevisions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old := w.add("a", "", "v1", jobs.Job{Name: "x", Schedule: "* * * * *"})
		w.eventually("the old definition is registered", func() bool { return old.has("x") })
		young := w.add("b", "", "v2", jobs.Job{Name: "x", Schedule: "*/5 * * * *"})
		w.eventually("the new definition is registered", func() bool { return young.has("x") })
		old.Rejected([]work.Rejection{{Job: old.Jobs.Named("x"), Why: work.Superseded}})
		w.eventually("the old one is superseded", func() bool {
			by := old.State.Unclaimable.Load()
			return by != nil && (*by)[work.Superseded] == 1 && !old.has("x")
		})
		young.stop()
		young.Leave(t.Context())
		w.eventually("the old one counts again", func() bool { return old.has("x") })
	})
}

// TestLost: after a loss every job is registered again, also when only the agenda has noticed.
func TestLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.add("a", "", "v1", jobs.Job{Name: "up", Schedule: "* * * * *"}, jobs.Job{Name: "down", After: []string{"up"}})
		w.eventually("all jobs are registered", func() bool { return a.has("up") && a.has("down") })
		stored := func() bool {
			all, err := query.Named(t.Context(), a.led, []string{"up", "down"})
			return err == nil && len(all) == 2
		}
		if err := w.client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := a.Record.RestoreParts(t.Context(), []int{0}); err != nil {
			t.Fatal(err)
		}
		w.eventually("they are registered again", stored)
		if err := w.client.Del(t.Context(), "{escapement:0}:jobs").Err(); err != nil {
			t.Fatal(err)
		}
		a.Rejected([]work.Rejection{{Job: a.Jobs.Named("up"), Why: work.NotStored}, {Job: a.Jobs.Named("down"), Why: work.NotStored}})
		w.eventually("they are registered once more", stored)
		followers, err := follow.Followers(t.Context(), a.led, []string{"up"})
		if err != nil || len(followers["up"]) != 1 {
			t.Error(followers, err)
		}
		a.Jobs.Change(nil, []*work.Job{a.Jobs.Named("down")}, "v1")
		a.Changed()
		w.eventually("a removed job has no cursor", func() bool { return !a.has("down") })
	})
}

// TestStandby: a node of another generation than the active one claims nothing, stores its definitions, and takes over when it is promoted.
func TestStandby(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		blue, green := w.add("a", "blue", "v1", someJobs(3)...), w.add("b", "green", "v2", someJobs(3)...)
		w.eventually("green is on standby", func() bool { return green.State.Standby.Load() && blue.has("job-2") && !green.has("job-0") })
		if c := green.State.Control.Load(); c == nil || c.Generation != "blue" || green.Record.active() != "blue" {
			t.Errorf("%+v", c)
		}
		p, err := define.Begin(t.Context(), green.led, ledger.Promotion{Generation: "green"})
		if err != nil {
			t.Fatal(err)
		}
		w.eventually("green learns of the promotion", func() bool { return green.State.Control.Load().Promoting != "" })
		if err := define.Raise(t.Context(), green.led, p); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(green.logged(), "on standby: another generation is active") {
			t.Error(green.logged())
		}
	})
}

// TestMoves: the states of a move, as the control record and the scripts show them.
func TestMoves(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	m := NewMoves(MovesConfig{Name: "a", Client: redis.NewClient(redistest.ClientOptions("127.0.0.1:1")), Jobs: work.NewJobs(nil, ""), Log: slog.New(slog.NewTextHandler(&log, nil))})
	defer m.Client.(*redis.Client).Close()
	sealed := ledger.Move{ID: "m1", Role: ledger.MoveFrom, State: ledger.MoveSealed, Peer: "there:1"}
	if m.Err() != nil || m.Moved() || m.vanished() {
		t.Error("a namespace is open at first")
	}
	m.NoteClosed(&ledger.ClosedError{State: ledger.MoveSealed, Move: "m1", Where: "there:1"})
	if !errors.Is(m.Err(), ledger.ErrClosed) || len(m.noticed) != 1 {
		t.Error(m.Err())
	}
	m.refused(m.Err())
	m.close(sealed, nil)
	m.close(sealed, nil)
	if got := strings.Count(log.String(), "a move has closed the namespace"); got != 1 {
		t.Errorf("logged %d times", got)
	}
	if !m.vanished() || !strings.Contains(m.Err().Error(), "during move m1") {
		t.Error(m.Err())
	}
	m.notClosed(ledger.Move{})
	if m.Err() == nil {
		t.Error("a namespace that somebody made anew is taken for this one")
	}
	m.notClosed(ledger.Move{ID: "m1", Role: ledger.MoveTo, State: ledger.MoveOpen})
	if m.Err() != nil {
		t.Error(m.Err())
	}
	m.close(ledger.Move{}, ledger.ErrUnknownFormat)
	m.noteNext(errors.New("no route"))
	if err := m.Err(); !errors.Is(err, ledger.ErrUnknownFormat) || !strings.Contains(err.Error(), "next: no route") {
		t.Error(err)
	}
	if !errors.Is(m.Gone(), ErrMoved) {
		t.Error(m.Gone())
	}
}

// TestAbsent: the namespace is missing at the start; the other side's record decides the error.
func TestAbsent(t *testing.T) {
	t.Parallel()
	move := func(role, state string) ledger.Control {
		return ledger.Control{Move: ledger.Move{ID: "m1", Role: role, State: state, Peer: "p:1", At: time.UnixMilli(1)}.String()}
	}
	for name, c := range map[string]struct {
		there ledger.Control
		err   error
		want  string // in the error; "" for none
	}{
		"the other side cannot be read": {ledger.Control{}, errors.New("no route"), "it cannot be seen whether it has moved"},
		"nothing was moved":             {ledger.Control{}, nil, ""},
		"it is open there":              {move(ledger.MoveTo, ledger.MoveOpen), nil, ErrMoved.Error()},
		"it has moved on from there":    {move(ledger.MoveFrom, ledger.MoveSealed), nil, ErrMoved.Error()},
		"the move was undone":           {move(ledger.MoveTo, ledger.MoveBurnt), nil, "was to stay"},
		"the move is under way":         {move(ledger.MoveTo, ledger.MoveFilling), nil, "during move m1"},
		"a newer version's record":      {ledger.Control{Move: "9|x"}, nil, "update this program"},
	} {
		if err := absent(c.there, c.err, "here", "there"); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for state, want := range map[string]string{ledger.MoveBurnt: ledger.MoveBurnt, ledger.MoveFilling: ledger.MoveFilling} {
		if e := (*ledger.ClosedError)(nil); !errors.As(closedBy(ledger.Move{Role: ledger.MoveTo, State: state}), &e) || e.State != want {
			t.Errorf("%s is %+v", state, e)
		}
	}
}

// TestWaiting: when unclaimable jobs are tried.
func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waiting{}
		if w.due() != tryAll || !w.seen(ledger.Control{Epoch: 1, Promoting: "p"}) {
			t.Error("at first all jobs are tried")
		}
		w.tried(tryAll, time.Second)
		if w.due() != tryNone || w.soon() != triesEvery || w.seen(ledger.Control{Epoch: 1, Promoting: "p"}) {
			t.Error("tried again at once")
		}
		if time.Sleep(slowest); w.due() != tryNonStandby || w.soon() != 0 || !w.seen(ledger.Control{Epoch: 1, Promoting: "p"}) {
			t.Error("during a promotion standby jobs are not tried again")
		}
		if time.Sleep(standbyTTL); w.due() != tryAll || !w.seen(ledger.Control{Epoch: 1}) || w.seen(ledger.Control{Epoch: 1}) {
			t.Error("after a minute, and at a change, all jobs are tried")
		}
	})
}
