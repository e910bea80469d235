//go:build unix

package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/ops"
)

// stint is how long runs last at the master that is going to be away. It goes away at half of that,
// when their ends are to be recorded.
const stint = 600 * time.Millisecond

// busyMasters is a Cluster with two nodes and jobs of all masters.
type busyMasters struct {
	*virtualMasters
	s                *sink
	n1, n2           roads
	node             *scheduler.Node // the first one
	there, elsewhere []jobs.Job
	lost             chan string   // the nodes of long runs elsewhere whose contexts ended
	healed           chan struct{} // closed when the master is back: what waited for it is quick then
}

func startBusyMasters(m *virtualMasters) *busyMasters {
	b := &busyMasters{virtualMasters: m, s: &sink{}, lost: make(chan string, 100), healed: make(chan struct{})}
	b.elsewhere = b.jobs(8, "elsewhere", false, b.s.note)
	b.there = b.jobs(8, "there", true, func(ctx context.Context, r *jobs.Run) error {
		b.s.write(r)
		select {
		case <-time.After(stint):
		case <-b.healed:
		case <-ctx.Done():
		}
		return nil
	})
	all := slices.Concat(b.there, b.elsewhere)
	for i := range 40 { // more and more of them are due while the master is away
		j := b.job(fmt.Sprint("now-and-then-", i), true, func(context.Context, *jobs.Run) error { return nil })
		j.Schedule = fmt.Sprintf("%d/10 * * * * *", i%10)
		all = append(all, j)
	}
	for _, there := range []bool{true, false} { // of those there renewals are not answered, which is to hold up no other
		for _, j := range b.jobs(3, fmt.Sprint("long-", there), there, func(ctx context.Context, r *jobs.Run) error {
			b.s.write(r)
			<-ctx.Done()
			if !there {
				b.lost <- r.Node()
			}
			return nil
		}) {
			j.TTL = 3 * time.Second
			all = append(all, j)
		}
	}
	cfg := scheduler.Config{Name: "n1", MaxRunning: 30, FailoverHold: time.Second}
	b.node = b.run(b.over(&b.n1), cfg, all...)
	cfg.Name = "n2"
	b.run(b.over(&b.n2), cfg, all...)
	return b
}

// kept wants no run elsewhere to have ended at a node that lives.
func (b *busyMasters) kept(living ...string) {
	b.t.Helper()
	for range len(b.lost) {
		if node := <-b.lost; slices.Contains(living, node) {
			b.t.Errorf("a run at another master ended at %s", node)
		}
	}
}

// onTime wants the jobs to have run at every second between two instants, most late at most.
func (b *busyMasters) onTime(what string, list []jobs.Job, from, to time.Time, most time.Duration) {
	b.t.Helper()
	if latest := b.s.each(b.t, list, from.Add(time.Second), to.Add(-time.Second)); latest > most {
		b.t.Errorf("%s: the latest run started %s late, %s at most is right", what, latest, most)
	}
}

// A master of a Cluster goes silent for all nodes, and then a node dies. Jobs whose partitions live
// at other masters are not disturbed: unanswered claims and ends at the silent master do not delay
// them, and the dead node's runs are reaped. Where the silent master has the roster, nodes go on
// with the last known view and clock.
func TestJobsOfOtherMastersGoOn(t *testing.T) {
	for _, home := range []bool{false, true} {
		t.Run(fmt.Sprint("home ", home), func(t *testing.T) {
			virtually(t, home, func(m *virtualMasters) {
				t, b := m.t, startBusyMasters(m)
				cut := b.until(time.Now().Add(5 * time.Second).Truncate(time.Second).Add(stint / 2))
				b.n1.away.Cut()
				b.n2.away.Cut()
				dead := cut.Truncate(time.Second).Add(5*time.Second + stint/2) // between ticks, else what it was granted would wait for the end of its leases
				for b.until(time.Now().Add(2 * time.Second)); time.Now().Before(dead); b.until(time.Now().Add(10 * time.Millisecond)) {
					if err := b.node.Ready(); err != nil {
						t.Fatalf("not ready while one master is silent: %v", err)
					}
				}
				b.kept("n1", "n2")
				b.onTime("a master is silent", b.elsewhere, cut, time.Now(), 2*time.Second)
				long := 0 // runs of the dead node that another one is to take over
				for _, r := range b.s.all() {
					if r.node == "n2" && strings.HasPrefix(r.job, "long-false") {
						long++
					}
				}
				b.n2.others.Cut()
				over := b.until(dead.Add(4 * time.Second))
				if !home {
					b.onTime("a node is dead besides", b.elsewhere, dead, over, 2*time.Second)
				}
				for again := 0; again < long; b.until(time.Now().Add(50*time.Millisecond), "a dead node's runs are reaped") {
					again = 0
					for _, r := range b.s.all() {
						if r.node == "n1" && strings.HasPrefix(r.job, "long-false") && r.at.After(dead) {
							again++
						}
					}
				}
				b.kept("n1")
				close(b.healed)
				b.n1.away.Heal()
				back, last := time.Now(), make(map[string]string)
				for _, r := range b.s.all() {
					last[r.job] = r.node
				}
				for _, j := range b.there {
					if last[j.Name] != "n1" {
						continue // held by a run of the dead node
					}
					if r := b.ran("the master is back", j, b.s, back); r.at.Sub(back) > 3*time.Second {
						t.Errorf("%s ran there %s after the master was back", j.Name, r.at.Sub(back))
					}
				}
			})
		})
	}
}

// A node starts with a job that follows one at a silent master. Jobs of the same partition, behind
// it in the batch, are registered all the same, and it is when the master is back; also where the
// namespace has a generation.
func TestFollowerOfASilentMaster(t *testing.T) { virtually(t, false, followerOfASilentMaster) }

func followerOfASilentMaster(m *virtualMasters) {
	s := &sink{}
	up, follower := m.job("up", true, s.note), m.job("follower", false, s.note)
	follower.Schedule, follower.After = "", []string{up.Name}
	behind := m.job("z", false, s.note) // after it by name
	for i := 0; ledger.Partition(behind.Name, clusterPartitions) != ledger.Partition(follower.Name, clusterPartitions); i++ {
		behind.Name = fmt.Sprint("z-", i)
	}
	cfg := scheduler.Config{Name: "n1", Generation: "green", FailoverHold: time.Second}
	first := m.job("first", false, s.note)
	m.run(m.client(), cfg, first)
	m.ran("the namespace", first, s, time.Time{})
	var r roads
	client := m.over(&r)
	r.away.Cut()
	cfg.Name = "n2"
	m.run(client, cfg, up, follower, behind)
	m.ran("the job behind the follower", behind, s, time.Time{})
	r.away.Heal()
	m.ran("the follower, when the master is back", follower, s, time.Time{})
}

// fewSlots is how many runs the node of these tests carries, which is as many as it has jobs at the
// master that is going to be away.
const fewSlots = 10

// narrow is a Cluster with one node that has few slots.
type narrow struct {
	*virtualMasters
	r         roads
	s         *sink
	elsewhere []jobs.Job

	mu             sync.Mutex
	running, most  int            // how many functions run, and ran at once at most
	granted, begun map[string]int // how often a tick there was granted and begun
	full           chan struct{}  // while it is open, and is not nil, runs elsewhere do not end
}

// locked does something under the lock.
func (a *narrow) locked(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

func startNarrow(m *virtualMasters, skew time.Duration) *narrow {
	a := &narrow{virtualMasters: m, s: &sink{}, granted: make(map[string]int), begun: make(map[string]int)}
	work := func(ctx context.Context, r *jobs.Run, until <-chan time.Time) error {
		a.s.write(r)
		var full chan struct{}
		a.locked(func() {
			a.begun[fmt.Sprint(r.Job(), " ", r.Tick().Unix())]++
			a.running++
			a.most, full = max(a.most, a.running), a.full
		})
		defer a.locked(func() { a.running-- })
		if until != nil {
			full = nil
		} else if full == nil {
			return nil
		}
		select {
		case <-until:
		case <-full:
		case <-ctx.Done():
		}
		return nil
	}
	there := a.jobs(fewSlots, "there", true, func(ctx context.Context, r *jobs.Run) error { return work(ctx, r, time.After(stint)) })
	a.elsewhere = a.jobs(fewSlots, "elsewhere", false, func(ctx context.Context, r *jobs.Run) error { return work(ctx, r, nil) })
	hooks := scheduler.Hooks{Claimed: func(r scheduler.RunEvent) {
		a.locked(func() { a.granted[fmt.Sprint(r.Job, " ", r.Tick.Unix())]++ })
	}}
	for i := range a.elsewhere { // each tick runs, also when this machine stands still for a second
		a.elsewhere[i].Overlap, a.elsewhere[i].CatchUp = jobs.OverlapAllow, jobs.CatchUpAll
	}
	client := a.over(&a.r)
	client.AddHook(around{script: "unclaim", before: sync.OnceFunc(func() { // hand-backs are not answered for longer than a few tries
		a.r.away.Cut()
		time.AfterFunc(7*time.Second, a.r.away.Heal)
	})})
	list := slices.Concat(there, a.elsewhere)
	for i := range list {
		list[i].TTL = 30 * time.Second
	}
	a.run(client, scheduler.Config{Name: "n1", MaxRunning: fewSlots, FailoverHold: time.Second, MaxSkew: skew, Hooks: &hooks}, list...)
	return a
}

// All slots of a node are taken by what a silent master of a Cluster does not answer: claims of its
// jobs, or the ends of their runs. Jobs of the other masters go on, and never more runs at once
// than the node has slots.
func TestSilentMasterTakesNoSlots(t *testing.T) {
	for name, past := range map[string]time.Duration{"claims": time.Second - 20*time.Millisecond, "ends of runs": stint / 2} {
		t.Run(name, func(t *testing.T) {
			virtually(t, false, func(m *virtualMasters) {
				t, a := m.t, startNarrow(m, time.Second)
				cut := a.until(time.Now().Add(4 * time.Second).Truncate(time.Second).Add(past))
				a.r.away.Cut()
				over := a.until(cut.Add(6 * time.Second))
				a.r.away.Heal()
				a.until(over.Add(3 * time.Second))
				if latest := a.s.each(t, a.elsewhere, cut.Add(time.Second), over); latest > 2*time.Second {
					t.Errorf("a run elsewhere started %s late", latest)
				}
				a.locked(func() {
					if a.most > fewSlots {
						t.Errorf("%d runs at once on a node with %d slots", a.most, fewSlots)
					}
				})
			})
		})
	}
}

// Claims are granted, their answers are delayed, and other claims take their slots meanwhile. The
// runs are handed back, however late the hand-back is answered, and begin when a slot is free, each
// once.
func TestSlotsOfClaimsInDoubtAreTaken(t *testing.T) {
	virtually(t, false, slotsOfClaimsInDoubtAreTaken)
}

func slotsOfClaimsInDoubtAreTaken(m *virtualMasters) {
	t, a := m.t, startNarrow(m, 6*time.Second) // leases begin with 18 s then, which is longer than the hand-backs take
	tick := a.until(time.Now().Add(4*time.Second).Truncate(time.Second).Add(-20*time.Millisecond)).Unix() + 1
	a.r.away.CutReplies()
	a.until(time.Unix(tick, 0).Add(stint))
	full := make(chan struct{})
	a.locked(func() { a.full = full })
	a.until(time.Unix(tick+3, 0))
	a.locked(func() {
		if a.running != fewSlots {
			t.Errorf("%d runs hold the slots of claims in doubt, want all %d", a.running, fewSlots)
		}
	})
	a.r.away.Heal()
	a.until(time.Unix(tick+5, 0))
	a.locked(func() { a.full = nil })
	close(full)
	for back := 0; back == 0; a.until(time.Now().Add(50*time.Millisecond), "no run was handed back and begun later") {
		a.locked(func() {
			for run, times := range a.granted {
				if times > 1 && a.begun[run] == 1 {
					back++
				}
			}
		})
	}
	a.locked(func() {
		if a.most > fewSlots {
			t.Errorf("%d runs at once on a node with %d slots", a.most, fewSlots)
		}
		for run, times := range a.begun {
			if times != 1 {
				t.Errorf("%s was begun %d times", run, times)
			}
		}
	})
}

// A master of a Cluster answers late, but in time to count as reachable. Its claims and ends, some
// always under way, do not delay the other masters' claims and ends, which would be 350 ms late:
// half of their runs begin at most 100 ms later than with a fast master, also on a busy machine.
func TestSlowMaster(t *testing.T) { virtually(t, false, slowMaster) }

func slowMaster(m *virtualMasters) {
	t, s := m.t, &sink{}
	elsewhere := m.jobs(8, "elsewhere", false, s.note)
	var there atomic.Int64
	all := slices.Clone(elsewhere)
	for i := range 16 { // each at an instant of its own
		j := m.job(fmt.Sprint("there-", i), true, func(context.Context, *jobs.Run) error {
			there.Add(1)
			return nil
		})
		j.Schedule = fmt.Sprintf("@every %dms", 1000+13*i)
		all = append(all, j)
	}
	var r roads
	client := m.over(&r)
	m.run(client, scheduler.Config{Name: "n1"}, all...)
	// The master is slow and fast by turns, so that both are measured under whatever else the
	// machine does. Ticks come half a second after a turn at the earliest.
	const turns, turn = 6, 2 * time.Second
	begun := m.until(time.Now().Truncate(time.Second).Add(2500 * time.Millisecond))
	slow := func(tick time.Time) bool { return tick.Sub(begun)/turn%2 == 1 }
	ran := int64(0)
	for i := range turns {
		before := there.Load()
		if i%2 == 1 {
			r.away.Delay(350 * time.Millisecond)
		}
		m.until(begun.Add(time.Duration(i+1) * turn))
		if i%2 == 1 {
			r.away.Heal()
			ran += there.Load() - before
		}
	}
	over := begun.Add(turns * turn)
	if ran < 40 {
		t.Errorf("%d runs there in six seconds, want half of those that are due at least: it counts as silent", ran)
	}
	if latest := s.each(t, elsewhere, begun, over.Add(-time.Second)); latest > time.Second {
		t.Errorf("a run elsewhere started %s late", latest)
	}
	usual := s.median(t, elsewhere, begun, over, func(tick time.Time) bool { return !slow(tick) })
	late := s.median(t, elsewhere, begun, over, slow)
	if late > usual+100*time.Millisecond {
		t.Errorf("runs elsewhere started %s late, and %s while it was fast", late, usual)
	}
}

// median is how late half of the runs of some jobs began at most whose ticks lie between two
// instants and are among some.
func (s *sink) median(t *testing.T, list []jobs.Job, from, to time.Time, among func(tick time.Time) bool) time.Duration {
	t.Helper()
	var late []time.Duration
	for _, r := range s.all() {
		if r.tick.After(from) && r.tick.Before(to) && among(r.tick) && slices.ContainsFunc(list, func(j jobs.Job) bool { return j.Name == r.job }) {
			late = append(late, r.at.Sub(r.tick))
		}
	}
	if len(late) == 0 {
		t.Fatalf("none of these jobs ran between %s and %s", from, to)
	}
	slices.Sort(late)
	return late[len(late)/2]
}

// A master of a Cluster answers reads, and refuses writes for want of memory. A node that starts
// meanwhile runs the other masters' jobs. Successful reads must not hide that the master's jobs
// wait, or their claims would take all slots by and by.
func TestMasterThatTakesNoWrites(t *testing.T) { virtually(t, false, masterThatTakesNoWrites) }

func masterThatTakesNoWrites(m *virtualMasters) {
	b := startBusyMasters(m)
	full := b.until(time.Now().Add(5 * time.Second).Truncate(time.Second).Add(stint / 2))
	b.away.RefuseWrites("OOM command not allowed when used memory > 'maxmemory'.")
	late := &sink{}
	there, elsewhere := b.job("new-there", true, late.note), b.job("new-elsewhere", false, late.note)
	b.run(b.client(), scheduler.Config{Name: "n3", FailoverHold: time.Second}, there, elsewhere)
	b.ran("a run elsewhere at a node that starts meanwhile", elsewhere, late, time.Time{})
	over := b.until(full.Add(6 * time.Second))
	b.kept("n1", "n2")
	close(b.healed)
	b.away.RefuseWrites("")
	b.onTime("a master refuses", b.elsewhere, full, over, time.Second)
	for _, j := range b.there { // on a busy machine a tick may come so late that the next one is passed over
		for last := over.Add(time.Second); last.Before(over.Add(4 * time.Second)); {
			last = b.ran("it does not any more", j, b.s, last).at
		}
	}
}

// A master of a Cluster takes no writes until leases of nodes that live have lapsed. What succeeded
// there meanwhile is recorded as that when it takes them again, and not reaped and run once more.
func TestReapableAfterAnOutage(t *testing.T) { virtually(t, false, reapableAfterAnOutage) }

func reapableAfterAnOutage(m *virtualMasters) {
	t := m.t
	called, away := make(chan string, 100), make(chan struct{})
	list := m.jobs(5, "there", true, func(ctx context.Context, r *jobs.Run) error {
		called <- r.ID()
		select {
		case <-ctx.Done():
		case <-away:
		}
		return nil
	})
	var client *redis.ClusterClient
	for i := range list {
		list[i].Schedule, list[i].TTL, list[i].OnCrash = "@every 24h", 6*time.Second, jobs.OnCrashRerun
	}
	for _, name := range []string{"n1", "n2"} {
		client = m.client()
		m.run(client, scheduler.Config{Name: name, FailoverHold: time.Second}, list...)
	}
	for _, j := range list {
		m.trigger(client, j)
	}
	for range list {
		next(m.ctx, t, "a run was wanted", called)
	}
	m.until(time.Now().Add(2500 * time.Millisecond)) // the leases were renewed
	m.away.RefuseWrites("NOREPLICAS Not enough good replicas to write.")
	close(away)
	m.until(time.Now().Add(6500 * time.Millisecond)) // the leases have lapsed
	m.away.RefuseWrites("")
	m.until(time.Now().Add(6 * time.Second))
	if more := len(called); more > 0 {
		t.Errorf("functions were called %d times more than there are runs", more)
	}
}

// trigger triggers a job, again until the nodes have registered the job.
func (m *masters[S]) trigger(client redis.UniversalClient, j jobs.Job) {
	m.t.Helper()
	asks := must[*ops.Client](m.t)(ops.New(client, clusterNamespace))
	for {
		_, err := asks.Trigger(m.ctx, j.Name, ops.TriggerOptions{})
		if err == nil {
			return
		}
		m.until(time.Now().Add(50*time.Millisecond), err.Error())
	}
}
