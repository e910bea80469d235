package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/ops"
)

// reads counts commands of a client by their names, and the most of one name in one round trip.
type reads struct {
	mu         sync.Mutex
	all, burst map[string]int
	at         func(name string) error // before a round trip with such a command; an error is its answer
	alone      func(name string)       // before a command that is a round trip of its own
}

func (r *reads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *reads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if r.alone != nil {
			r.alone(cmd.Name())
		}
		return next(ctx, cmd)
	}
}

func (r *reads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		now := make(map[string]int)
		for _, c := range cmds {
			now[c.Name()]++
		}
		r.mu.Lock()
		for name, n := range now {
			r.all[name] += n
			r.burst[name] = max(r.burst[name], n)
		}
		at := r.at
		r.mu.Unlock()
		for name := range now {
			if at == nil {
				break
			}
			if err := at(name); err != nil {
				for _, c := range cmds {
					c.SetErr(err)
				}
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// since returns the counts since the last call.
func (r *reads) since() (all, burst map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, burst = r.all, r.burst
	r.all, r.burst = make(map[string]int), make(map[string]int)
	return all, burst
}

// manyBooks registers jobs with rows of history and returns a client whose reads are counted. The
// rows of a job are a minute apart, and jobs share their ticks.
func (c *cluster) manyBooks(n, rows int) (*ops.Client, *reads) {
	c.t.Helper()
	t, client := c.t, c.redis()
	l := must[*ledger.Ledger](t)(ledger.Join(t.Context(), client, ledger.Config{Partitions: partitions}))
	for i := range n {
		d := jobs.Job{Name: jobOf(i), Schedule: "0 0 1 1 *", TimeZone: "UTC"}.Definition()
		must[[]define.Defined](t)(define.Define(t.Context(), l, time.Now().UnixMilli(), []define.Definition{
			{Job: jobOf(i), Digest: d.Digest(), Text: must[[]byte](t)(json.Marshal(d)), Cursor: time.Now().Add(time.Hour).UnixMilli()}}))
		var records []any
		for r := range rows {
			at, outcome := int64(firstRow)+int64(r)*60_000, "succeeded"
			if r%3 == 0 {
				outcome = "failed"
			}
			records = append(records, fmt.Sprintf("1|R|%d|%d|%d|%d|0|1|1|1|%s|%d|node|n1|schedule||||%s||%d||", at, at+60_000, at+5, at, runOf(i, r), at, outcome, at))
		}
		if err := client.RPush(t.Context(), keyOf(jobOf(i), "history:"+jobOf(i)), records...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	seen := &reads{}
	seen.since()
	return c.ops(seen), seen
}

const firstRow = 946_684_800_000 - 3_600_000 // an hour before the time in a bubble begins

func jobOf(i int) string { return fmt.Sprintf("job-%04d", i) }

func runOf(i, row int) string { return fmt.Sprintf("%s-%d", jobOf(i), row) }

// unchecked is bubble for books that no node has written: their chains do not close.
func unchecked(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	parallel(t)
	synctest.Test(t, func(t *testing.T) {
		server := must[*redistest.Embedded](t)(redistest.Embed())
		defer server.Close()
		test(t, &cluster{t: t, logs: &logs{}, client: server.Client})
	})
}

// A look for a run reads as little of what all jobs have as it may.
func TestRunIsFoundWithFewReads(t *testing.T) {
	unchecked(t, func(t *testing.T, c *cluster) {
		in, seen := c.manyBooks(300, 20)
		ctx := t.Context()
		id := must[string](t)(in.Trigger(ctx, jobOf(7), ops.TriggerOptions{At: time.Now().Add(time.Hour), Payload: []byte(`{"n":1}`)}))
		seen.since()
		v := must[ops.RunView](t)(in.GetRun(ctx, id))
		if got, _ := seen.since(); got["lrange"] > 1 { // of its own job, for the attempt that follows
			t.Errorf("a pending run: read %v", got)
		}
		if v.Job != jobOf(7) || !v.Pending() || string(v.Payload) != `{"n":1}` {
			t.Errorf("a pending run: %+v", v)
		}
		v = must[ops.RunView](t)(in.GetRun(ctx, runOf(130, 3)))
		if v.Job != jobOf(130) || v.Outcome != jobs.OutcomeFailed {
			t.Errorf("an ended run: %+v", v)
		}
		if got, most := seen.since(); got["lrange"] > 2*128+1 || most["lrange"] > 128 {
			t.Errorf("an ended run: read %d histories, %d of them at once", got["lrange"], most["lrange"])
		}
		_, err := in.GetRun(ctx, "job-0130") // what other ids begin with
		refused(t, err, ops.ErrUnknownRun)
	})
}

// Pages are the whole list, cut into pieces.
func TestListInPages(t *testing.T) {
	unchecked(t, func(t *testing.T, c *cluster) {
		in, _ := c.manyBooks(60, 20)
		ctx := t.Context()
		far := must[string](t)(in.Trigger(ctx, jobOf(7), ops.TriggerOptions{At: time.Now().Add(time.Hour)}))
		must[ops.Cancellation](t)(in.Cancel(ctx, far, ops.CancelOptions{}))
		must[string](t)(in.Trigger(ctx, jobOf(8), ops.TriggerOptions{At: time.Now().Add(2 * time.Hour)}))
		for _, f := range []ops.RunFilter{
			{}, {Outcome: "failed"}, {Outcome: ops.OutcomePending}, {Since: time.UnixMilli(firstRow + 10*60_000)}, {Job: jobOf(7)}, {Outcome: "lost"},
		} {
			whole := must[ops.Page[ops.RunView]](t)(in.ListRuns(ctx, f))
			if whole.Next != "" {
				t.Errorf("%+v: behind the whole list there is more: %s", f, whole.Next)
			}
			for _, f.Limit = range []int{1, 59, 121, 1000, math.MaxInt/2 + 1, math.MaxInt} { // twice the largest ones is negative
				want := whole.Items
				for f.After = ""; ; {
					some := must[ops.Page[ops.RunView]](t)(in.ListRuns(ctx, f))
					n := min(f.Limit, len(want))
					if !same(some.Items, want[:n]) || (some.Next == "") != (n == len(want)) {
						t.Fatalf("%+v: %d runs and then %q, others than in the whole list, %d of %d", f, len(some.Items), some.Next, n, len(want))
					}
					if want, f.After = want[n:], some.Next; len(want) == 0 || f.Limit == 1 && len(want) < len(whole.Items)-20 {
						break
					}
				}
			}
		}
		for _, after := range []string{"x", "1,2,job", "a,b,c,d"} {
			refused(t, second(in.ListRuns(ctx, ops.RunFilter{After: after})), ops.ErrRefused, after)
		}
	})
}

// same compares what people see of runs.
func same(a, b []ops.RunView) bool {
	as, _ := json.Marshal(a)
	bs, _ := json.Marshal(b)
	return len(a) == len(b) && reflect.DeepEqual(as, bs)
}

// An unknown outcome is refused, and not treated as an outcome that no run has.
func TestListRefusesOtherWords(t *testing.T) {
	unchecked(t, func(t *testing.T, c *cluster) {
		in, _ := c.manyBooks(1, 3)
		for _, word := range []string{"timedout", "Failed", "pending,failed"} {
			_, err := in.ListRuns(t.Context(), ops.RunFilter{Outcome: word})
			refused(t, err, ops.ErrRefused, word, "timed_out", "or pending")
		}
		refused(t, second(in.ListRuns(t.Context(), ops.RunFilter{Limit: -1})), ops.ErrRefused, "-1")
		for _, word := range []string{"timed_out", "pending", "running"} {
			must[ops.Page[ops.RunView]](t)(in.ListRuns(t.Context(), ops.RunFilter{Outcome: word}))
		}
	})
}

// The end of the caller's context is no word about Redis, which has answered.
func TestLookEndsWithItsContext(t *testing.T) {
	unchecked(t, func(t *testing.T, c *cluster) {
		in, seen := c.manyBooks(3, 20)
		for name, f := range map[string]func(ctx context.Context) error{
			"look for run nope": func(ctx context.Context) error { return second(in.GetRun(ctx, "nope")) },
			"cancel run nope":   func(ctx context.Context) error { return second(in.Cancel(ctx, "nope", ops.CancelOptions{})) },
			"rerun nope":        func(ctx context.Context) error { return second(in.Rerun(ctx, "nope")) },
			"list runs":         func(ctx context.Context) error { return second(in.ListRuns(ctx, ops.RunFilter{})) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			seen.at = func(name string) error {
				if name != "lrange" {
					return nil
				}
				<-ctx.Done()
				return os.ErrDeadlineExceeded // as a connection reports the deadline
			}
			err := f(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, locking.ErrUnreachable) || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		seen.at = func(string) error { return os.ErrDeadlineExceeded }
		if _, err := in.GetRun(t.Context(), "nope"); !errors.Is(err, locking.ErrUnreachable) {
			t.Errorf("an outage: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// Running runs come first; ended runs are ordered by their end, a range of ticks by when it was
// recorded.
func TestListIsInTheOrderOfEnds(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		b, i, ctx := c.keepBooks(minutely), c.ops(), t.Context()
		first := b.def.Cursor
		time.Sleep(5 * time.Hour)
		b.miss(first, time.Now().UnixMilli()/60_000*60_000)
		recorded := time.Now()
		for since, want := range map[time.Time]int{time.UnixMilli(first): 1, recorded: 1, recorded.Add(time.Millisecond): 0} {
			if list := must[ops.Page[ops.RunView]](t)(i.ListRuns(ctx, ops.RunFilter{Since: since})); len(list.Items) != want {
				t.Errorf("since %s before it was recorded: %+v, want %d", recorded.Sub(since), list, want)
			}
		}
		hand := must[string](t)(i.Trigger(ctx, "job", ops.TriggerOptions{At: time.UnixMilli(first + 60_000)}))
		for limit, want := range map[int]int{1: 1, 0: 2} {
			list := must[ops.Page[ops.RunView]](t)(i.ListRuns(ctx, ops.RunFilter{Limit: limit}))
			if len(list.Items) != want || list.Items[0].Run != hand || want > 1 && list.Items[1].Until.IsZero() {
				t.Errorf("with limit %d: %+v, want the range last", limit, list.Items)
			}
		}
	})
}

// Ticks that were skipped because a dead node's lease held the job have that reason; ticks that
// were skipped for a living run do not.
func TestSkippedForADeadLease(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		forgetful := jobs.Job{Name: "job", Schedule: "@every 10s", TTL: 30 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			return nil
		}}
		working := jobs.Job{Name: "working", Schedule: "@every 1m", Func: func(ctx context.Context, _ *jobs.Run) error {
			select {
			case <-time.After(65 * time.Second):
			case <-ctx.Done():
			}
			return nil
		}}
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "doomed", scheduler.Config{DrainTimeout: time.Second}, forgetful)
		time.Sleep(11 * time.Second)
		network.Cut()
		forgetful.Func = func(context.Context, *jobs.Run) error { return nil }
		c.start("b", scheduler.Config{}, forgetful, working)
		time.Sleep(3 * time.Minute)
		notes := func(job string) (all []string) {
			for _, r := range c.runs(job) {
				if r.Outcome == jobs.OutcomeSkipped {
					all = append(all, r.Reason+": "+r.Note)
				}
			}
			return all
		}
		if got := notes("job"); len(got) != 1 || got[0] != "overlap: held by a dead node's lease" {
			t.Errorf("behind the dead node: %q", got)
		}
		if got := notes("working"); len(got) == 0 || slices.ContainsFunc(got, func(s string) bool { return s != "overlap: " }) {
			t.Errorf("behind a run that works: %q", got)
		}
	})
}

// Of a large namespace a page reads its own runs, and the newest rows: not all entries, definitions
// and histories.
func TestPagesOfALargeNamespace(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		const n = 1200
		ran := make(map[string]bool)
		var list []jobs.Job
		for i := range n {
			list = append(list, jobs.Job{Name: jobOf(i), Schedule: "@yearly", Func: func(context.Context, *jobs.Run) error { return nil }})
		}
		c.start("a", scheduler.Config{}, list...)
		c.start("b", scheduler.Config{}, list...)
		time.Sleep(5 * time.Second)
		seen := &reads{}
		seen.since()
		in, ctx := c.ops(seen), t.Context()
		for i := 0; i < n; i += 20 {
			ran[must[ops.RunView](t)(in.WaitRun(ctx, must[string](t)(in.Trigger(ctx, jobOf(i), ops.TriggerOptions{})))).Run] = true
		}
		seen.since()
		within := func(what string, most map[string]int) {
			t.Helper()
			all, _ := seen.since()
			for name, n := range most {
				if all[name] > n {
					t.Errorf("%s: %d times %s, want %d at most; %v", what, all[name], name, n, all)
				}
			}
		}
		var names []string
		for f := (ops.JobFilter{Limit: 50}); ; {
			page := must[ops.Page[ops.JobView]](t)(in.ListJobs(ctx, f))
			for _, j := range page.Items {
				if names = append(names, j.Name); j.Owner == "" || j.Schedule != "@yearly" {
					t.Fatalf("%+v", j)
				}
			}
			within("jobs", map[string]int{"lrange": 50, "hkeys": partitions, "hgetall": 0})
			if f.After = page.Next; f.After == "" {
				break
			}
		}
		if len(names) != n || !slices.IsSorted(names) {
			t.Errorf("pages have %d jobs", len(names))
		}
		for f := (ops.RunFilter{Limit: 20}); len(ran) > 0; {
			page := must[ops.Page[ops.RunView]](t)(in.ListRuns(ctx, f))
			for _, r := range page.Items {
				if !ran[r.Run] {
					t.Fatalf("run %s of %s is there twice, or not from here", r.Run, r.Job)
				}
				delete(ran, r.Run)
			}
			within("runs", map[string]int{"lrange": 400, "hkeys": 0})
			if f.After = page.Next; (f.After == "") != (len(ran) == 0) {
				t.Fatalf("%d are left, and the next page begins at %q", len(ran), f.After)
			}
		}
		for _, most := range []int{n, 1 << 50, math.MaxInt} {
			page := must[ops.Page[ops.JobView]](t)(in.ListJobs(ctx, ops.JobFilter{After: jobOf(0), Limit: most}))
			if len(page.Items) != n-1 || page.Next != "" {
				t.Errorf("at most %d: %d jobs, and then %q", most, len(page.Items), page.Next)
			}
		}
		refused(t, second(in.ListJobs(ctx, ops.JobFilter{Limit: -1})), ops.ErrRefused, "-1")
		seen.since()
		must[[]ops.NodeView](t)(in.ListNodes(ctx))
		must[ops.Page[ops.LockView]](t)(in.ListLocks(ctx, ops.LockFilter{}))
		within("nodes and leases", map[string]int{"lrange": 0, "hkeys": 0})
	})
}

// Whatever is written between the reads of a page: no run is left out of all pages, and a job that
// is gone ends no list.
func TestPagesOfANamespaceThatChanges(t *testing.T) {
	unchecked(t, func(t *testing.T, c *cluster) {
		in, seen := c.manyBooks(1100, 1)
		ctx, led := t.Context(), must[*ledger.Ledger](t)(ledger.Join(t.Context(), c.redis(), ledger.Config{Partitions: partitions}))
		var ran []string
		run := func(i int, pause, ahead time.Duration) {
			time.Sleep(pause)
			id, now := fmt.Sprintf("run-%04d", len(ran)), time.Now()
			must[string](t)(operate.Trigger(ctx, led, jobOf(i), operate.TriggerRequest{Run: id}))
			must[[]claim.Answer](t)(claim.Send(ctx, led, claim.Claimer{ID: "n1", Name: "node"}, now.UnixMilli(), []claim.Claim{{
				Job: jobOf(i), Digest: jobs.Job{Name: jobOf(i), Schedule: "0 0 1 1 *", TimeZone: "UTC"}.Definition().Digest(), Run: id, Pending: true, TTL: time.Minute, Attempts: 1,
			}}))
			must[[]ledger.Status](t)(settle.Settle(ctx, led, []settle.Report{{Job: jobOf(i), Run: id, Outcome: jobs.OutcomeSucceeded, Started: now.UnixMilli(), Ended: now.Add(ahead).UnixMilli()}}))
			ran = append(ran, id)
		}
		complete := func(what string) {
			t.Helper()
			before, found := slices.Clone(ran), make(map[string]bool)
			for f := (ops.RunFilter{Limit: 7}); ; {
				page := must[ops.Page[ops.RunView]](t)(in.ListRuns(ctx, f))
				for _, r := range page.Items {
					found[r.Run] = true
				}
				if f.After = page.Next; f.After == "" {
					break
				}
			}
			if before = slices.DeleteFunc(before, func(id string) bool { return found[id] }); len(before) > 0 {
				t.Errorf("%s: %q are on no page", what, before)
			}
		}
		for i := range 40 {
			run(i+1, time.Second, 0)
		}
		run(0, time.Second, 0)
		run(1, time.Second, 0)
		run(0, time.Second, 0)
		lists := 0
		seen.at = func(name string) error {
			if name == "lrange" {
				lists++
			}
			for lists == 2 && len(ran) < 46 { // after the list of recently written jobs was read, before their rows
				run(0, time.Millisecond, 0)
			}
			return nil
		}
		complete("a job that runs meanwhile")
		run(50, time.Second, 900*time.Millisecond)
		for i := range 100 {
			run(100+i, 2*time.Millisecond, 0)
		}
		complete("a node whose clock is ahead")

		seen.alone = func(name string) {
			if name == "hmget" {
				seen.alone = nil
				if err := operate.Remove(ctx, led, jobOf(0)); err != nil {
					t.Error(err)
				}
			}
		}
		page := must[ops.Page[ops.JobView]](t)(in.ListJobs(ctx, ops.JobFilter{Limit: 1}))
		if len(page.Items) != 0 || page.Next != jobOf(0) {
			t.Errorf("a page whose jobs are gone: %d, and then %q", len(page.Items), page.Next)
		}
	})
}
