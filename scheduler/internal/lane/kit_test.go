package lane

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// silent keeps the client's own log out of the tests' output.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}

const (
	hold  = 3 * time.Second
	ttl   = 15 * time.Second
	slots = 4
)

// node is a node around its lanes, in virtual time. The agenda has ended, so what it would be sent goes to the slots alone.
type node struct {
	*Lanes
	t       *testing.T
	redis   []*redistest.Embedded
	cluster *redistest.EmbeddedCluster // nil for an only server
	led     *ledger.Ledger
	answers chan *work.Batch
	lost    chan struct{}
	client  redis.UniversalClient

	mu        sync.Mutex
	log       strings.Builder
	grants    []work.Grant
	cancelled []string
	abandoned []string
	skipped   int64
	settled   []ledger.Status
	digests   []string                  // in which the nodes hold each job
	leases    map[string]*locking.Lease // of the runs that go on
	ends      []context.CancelFunc
	closed    bool
}

func (w *node) Living() []sharding.Node { return []sharding.Node{{ID: "n1"}} }
func (w *node) NoNode(_, digest string, _ map[string]string) string {
	if slices.Contains(w.Digests(""), digest) {
		return ""
	}
	return "no living node holds it"
}
func (w *node) Digests(string) (all []string) {
	w.note(func() { all = w.digests })
	return all
}
func (w *node) Owns(*work.Job) bool    { return true }
func (w *node) Grants() []work.Grant   { return w.granted() }
func (w *node) Progress(string) string { return "" }
func (w *node) Cancelled(c ledger.Cancel) {
	w.note(func() { w.cancelled = append(w.cancelled, c.Run) })
}
func (w *node) Abandoned(l ledger.Run) {
	w.note(func() { w.abandoned = append(w.abandoned, l.ID) })
}
func (w *node) Skipped(_ string, p ledger.SkippedRange) {
	w.note(func() { w.skipped += p.Count })
}
func (w *node) Settled(r settle.Report, s ledger.Status, _ error) {
	var l *locking.Lease
	if w.note(func() { w.settled, l = append(w.settled, s), w.leases[r.Run] }); l != nil {
		l.Close()
	}
}
func (w *node) Write(p []byte) (int, error) {
	w.note(func() { w.log.Write(p) })
	return len(p), nil
}

func (w *node) note(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// holdIn has the nodes hold each job in these definitions.
func (w *node) holdIn(digests ...string) { w.note(func() { w.digests = digests }) }

// noted reports whether a condition holds of the node's notes.
func (w *node) noted(is func() bool) (yes bool) {
	w.note(func() { yes = is() })
	return yes
}

func (w *node) granted() (all []work.Grant) {
	w.note(func() { all = append(all, w.grants...) })
	return all
}

// inNode runs a test with the lanes of a node that has these jobs, whose next tick is the next full minute. On a Cluster there are three
// masters.
func inNode(t *testing.T, cluster bool, own []jobs.Job, test func(t *testing.T, w *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &node{t: t, answers: make(chan *work.Batch, 8), lost: make(chan struct{}, 1), leases: make(map[string]*locking.Lease)}
		w.connect(cluster)
		defer w.close()
		var list []*work.Job
		for _, j := range own {
			list = append(list, w.define(j))
		}
		w.start(work.NewJobs(list, "v1"))
		test(t, w)
	})
}

// connect starts Redis and opens the ledger.
func (w *node) connect(cluster bool) {
	var err error
	if cluster {
		if w.cluster, err = redistest.EmbedCluster(); err == nil {
			w.redis, w.client = w.cluster.Masters(), w.cluster.Client()
		}
	} else {
		var e *redistest.Embedded
		if e, err = redistest.Embed(); err == nil {
			w.redis, w.client = []*redistest.Embedded{e}, e.Client()
		}
	}
	if err == nil {
		w.led, err = ledger.Join(w.t.Context(), w.client, ledger.Config{MaxSkew: skew, Partitions: 1 + 3*(len(w.redis)-1)/2})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// define stores a job, whose cursor is the next full minute.
func (w *node) define(own jobs.Job) *work.Job {
	w.t.Helper()
	schedule, err := own.ParsedSchedule()
	if err != nil {
		w.t.Fatal(err)
	}
	d := own.Definition()
	text, err := json.Marshal(d)
	if err != nil {
		w.t.Fatal(err)
	}
	j := &work.Job{Job: own, Schedule: schedule, Def: d, Digest: d.Digest(), Part: w.led.Partition(own.Name)}
	def := define.Definition{Job: j.Name, Digest: j.Digest, Text: text}
	if schedule != nil {
		def.Cursor = schedule.Next(time.Now().Truncate(time.Minute).Add(time.Minute - 1)).UnixMilli()
	}
	if got, err := define.Define(w.t.Context(), w.led, time.Now().UnixMilli(), []define.Definition{def}); err != nil || got[0].Status != "created" {
		w.t.Fatal(got, err)
	}
	w.digests = append(w.digests, j.Digest)
	return j
}

// start starts the lanes.
func (w *node) start(list *work.Jobs) {
	log := slog.New(slog.NewTextHandler(w, nil))
	s := agenda.NewSlots(slots)
	inbox, clock := agenda.NewInbox(s), NewClock(time.Now, time.Minute)
	over, cancel := context.WithCancel(w.t.Context())
	cancel()
	agenda.New(agenda.Config{Jobs: work.NewJobs(nil, ""), Inbox: inbox, Slots: s, Clock: ended{}, Lanes: ended{}}).Run(over)
	w.Lanes = New(Config{
		Ledger: w.led, ID: "n1", Name: "n1", Clock: clock, Health: NewHealth(w.client, "", func(error) {}, log), Jobs: list, Slots: s, Inbox: inbox,
		Answers: w.answers, Nodes: w, Runs: w, Listener: w, Stopping: func() bool { return false }, TakesWork: func() bool { return true },
		Closed: func() bool { return w.closed }, Beat: make(chan struct{}, 1), Lost: w.lost,
		Restore: func(ctx context.Context, parts []int) error {
			control, err := w.led.RestoreControl(ctx, "")
			if err != nil {
				return err
			}
			return w.led.RestoreParts(ctx, control, parts)
		},
		MaxSkew: skew, Grace: 500 * time.Millisecond, SweepEvery: 250 * time.Millisecond, FailoverHold: hold, Log: log,
	})
	if err := w.Begin(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for _, j := range list.All() {
		w.Registered(j, w.cursor(j.Name))
	}
	w.alone()
	group := &sync.WaitGroup{}
	sweeping, stopSweeping := context.WithCancel(context.Background())
	claiming, stopClaiming := context.WithCancel(context.Background())
	alive, stop := context.WithCancel(context.Background())
	w.ends = []context.CancelFunc{stopSweeping, stopClaiming, stop, group.Wait}
	w.Start(Terms{Runner: starter{w}, Sweeping: sweeping, Claiming: claiming, Alive: alive, Group: group})
	w.eventually("the node claims", func() bool { return w.Holding() == nil })
}

// alone notes that no other node lives.
func (w *node) alone() { w.Seen(nil, w.Living()) }

// close stops the lanes and Redis.
func (w *node) close() {
	for _, l := range w.leases {
		l.Close()
	}
	for _, end := range w.ends {
		end()
	}
	_ = w.client.Close()
	time.Sleep(2 * time.Second) // go-redis may be about to dial once more
	for _, e := range w.redis {
		e.Close()
	}
}

// eventually waits, in virtual time, until a condition holds; the roster shows no other node meanwhile.
func (w *node) eventually(what string, is func() bool) {
	w.t.Helper()
	for range 900 {
		if synctest.Wait(); is() {
			return
		}
		time.Sleep(100 * time.Millisecond)
		w.alone()
	}
	w.t.Fatalf("not so within 90 s: %s; the log:\n%s", what, w.logged())
}

func (w *node) logged() (text string) {
	w.note(func() { text = w.log.String() })
	return text
}

func (w *node) cursor(job string) int64 {
	w.t.Helper()
	entries, err := query.Named(w.t.Context(), w.led, []string{job})
	if err != nil || len(entries) != 1 {
		w.t.Fatal(entries, err)
	}
	return entries[0].Cursor
}

// claimOf is a batch that claims the next tick of a job, which must be due.
func (w *node) claimOf(job, run string) *work.Batch {
	j := w.Jobs.Named(job)
	tick := w.cursor(job)
	c := claim.Claim{
		Job: job, Digest: j.Digest, Run: run, TTL: ttl, Attempts: 1, Shards: 1, From: tick, Tick: tick,
		Next: j.Schedule.Next(time.UnixMilli(tick)).UnixMilli(), Trigger: jobs.TriggerSchedule,
	}
	return &work.Batch{Part: j.Part, Jobs: []*work.Job{j}, Claims: []claim.Claim{c}, StartBy: []int64{0}, Created: time.Now()}
}

// run claims the next tick of a job when it is due, and returns the grant.
func (w *node) run(job, run string) work.Grant {
	w.t.Helper()
	time.Sleep(time.Until(time.UnixMilli(w.cursor(job))))
	w.Claim(w.claimOf(job, run))
	if b := <-w.answers; b.Err != nil || b.Answers[0].Verdict != claim.Granted || !b.Started[0] {
		w.t.Fatalf("%+v", b)
	}
	all := w.granted()
	g := all[len(all)-1]
	if g.Lease.ID != run || !w.Begins(g) {
		w.t.Fatalf("%+v does not begin", g)
	}
	l := w.Hold(w.t.Context(), g.Job.Part, locking.Grant{
		Name: job, Owner: run, Token: g.Lease.Token, TTL: ttl, First: g.FirstTTL, Asked: g.FirstSent,
	})
	w.note(func() { w.leases[run] = l })
	return g
}

// end settles a run.
func (w *node) end(g work.Grant, how jobs.Outcome) {
	now := time.Now().UnixMilli()
	w.Settle(g, settle.Report{Job: g.Lease.Job, Run: g.Lease.ID, Token: g.Lease.Token, Outcome: how, Started: now, Ended: now, Tries: 1}, w)
}

// rows are the rows of a job's history: outcomes.
func (w *node) rows(job string) (list []string) {
	w.t.Helper()
	rows, _, err := query.History(w.t.Context(), w.led, []string{job})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows[job] {
		list = append(list, r.Outcome.String())
	}
	return list
}

// entry is a job's entry.
func (w *node) entry(job string) query.Stored {
	w.t.Helper()
	s, err := query.Job(w.t.Context(), w.led, job)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// starter notes the runs that a node is granted.
type starter struct{ w *node }

func (s starter) Start(g work.Grant) bool {
	s.w.note(func() { s.w.grants = append(s.w.grants, g) })
	return true
}

// ended is the surroundings of an agenda that has ended.
type ended struct{}

func (ended) Now() time.Time    { return time.Now() }
func (ended) Past() time.Time   { return time.Now() }
func (ended) Usable() error     { return nil }
func (ended) Claim(*work.Batch) {}
func (ended) Sweep(int)         {}
func (ended) Holding() error    { return nil }
func (ended) Blocked(int) bool  { return false }

var _ locking.Renewer = (*Lanes)(nil)
