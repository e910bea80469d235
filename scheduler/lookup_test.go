package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
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
	"github.com/escapement/escapement/scheduler/ledger"
)

// reads counts commands of a client by their names, and the most of one name in one round trip.
type reads struct {
	mu         sync.Mutex
	all, burst map[string]int
	at         func(name string) error // before a round trip with such a command; an error is its answer
}

func (r *reads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *reads) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

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

// since returns what was counted since the last call.
func (r *reads) since() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all, r.burst = make(map[string]int), make(map[string]int)
	return all
}

// onBooks is bubble for books that no node has written.
func onBooks(t *testing.T, test func(t *testing.T, server *redistest.Embedded)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := must[*redistest.Embedded](t)(redistest.Embed())
		defer server.Close()
		test(t, server)
	})
}

// manyBooks registers jobs with rows of history and returns an inspector whose reads are counted. The rows of a job are a
// minute apart, and jobs share their ticks.
func manyBooks(t *testing.T, server *redistest.Embedded, n, rows int) (*scheduler.Inspector, *reads) {
	t.Helper()
	client := server.Client()
	t.Cleanup(func() { _ = client.Close() })
	l, err := ledger.Open(t.Context(), client, ledger.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		d := jobs.Job{Name: jobOf(i), Schedule: "0 0 1 1 *", TimeZone: "UTC"}.Definition()
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		must[[]ledger.Defined](t)(l.Define(t.Context(), time.Now().UnixMilli(), []ledger.Definition{
			{Job: jobOf(i), Digest: d.Digest(), Text: text, Cursor: time.Now().Add(time.Hour).UnixMilli()}}))
		var records []any
		for r := range rows {
			at, outcome := int64(1_763_726_400_000+r*60_000), "succeeded"
			if r%3 == 0 {
				outcome = "failed"
			}
			records = append(records, fmt.Sprintf("1|R|%d|%d|%d|%d|0|1|1|1|%s|%d|node|n1|schedule||||%s||%d||", at, at+60_000, at+5, at, runOf(i, r), at, outcome, at))
		}
		if err := client.RPush(t.Context(), fmt.Sprintf("{escapement:%d}:history:%s", ledger.Partition(jobOf(i), 16), jobOf(i)), records...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	seen := &reads{}
	seen.since()
	client.AddHook(seen)
	in, err := scheduler.NewInspector(client, "")
	if err != nil {
		t.Fatal(err)
	}
	return in, seen
}

func jobOf(i int) string { return fmt.Sprintf("job-%04d", i) }

func runOf(i, row int) string { return fmt.Sprintf("%s-%d", jobOf(i), row) }

// A look for a run reads as little of what all jobs have as it may.
func TestRunIsFoundWithFewReads(t *testing.T) {
	onBooks(t, func(t *testing.T, server *redistest.Embedded) {
		in, seen := manyBooks(t, server, 300, 20)
		ctx := t.Context()
		id := must[string](t)(in.Trigger(ctx, jobOf(7), scheduler.TriggerOptions{At: time.Now().Add(time.Hour), Payload: []byte(`{"n":1}`)}))
		seen.since()
		v := must[scheduler.RunView](t)(in.Run(ctx, id))
		if got := seen.since(); got["lrange"] > 1 { // of its own job, for the attempt that follows
			t.Errorf("a pending run: read %v", got)
		}
		if v.Job != jobOf(7) || !v.Pending() || string(v.Payload) != `{"n":1}` {
			t.Errorf("a pending run: %+v", v)
		}
		v = must[scheduler.RunView](t)(in.Run(ctx, runOf(130, 3)))
		if v.Job != jobOf(130) || v.Outcome != "failed" {
			t.Errorf("an ended run: %+v", v)
		}
		seen.mu.Lock()
		if got, most := seen.all["lrange"], seen.burst["lrange"]; got > 2*128+1 || most > 128 {
			t.Errorf("an ended run: read %d histories, %d of them at once", got, most)
		}
		seen.mu.Unlock()
		if _, err := in.Run(ctx, "job-0130"); !errors.Is(err, scheduler.ErrUnknownRun) {
			t.Errorf("what other ids begin with: %v", err)
		}
	})
}

// A limit shortens a list, and changes nothing else in it.
func TestListKeepsTheNewest(t *testing.T) {
	onBooks(t, func(t *testing.T, server *redistest.Embedded) {
		in, _ := manyBooks(t, server, 150, 20)
		ctx := t.Context()
		far := must[string](t)(in.Trigger(ctx, jobOf(7), scheduler.TriggerOptions{At: time.Now().Add(time.Hour)}))
		must[scheduler.Cancellation](t)(in.Cancel(ctx, far, scheduler.CancelOptions{}))
		must[string](t)(in.Trigger(ctx, jobOf(8), scheduler.TriggerOptions{At: time.Now().Add(2 * time.Hour)}))
		for _, f := range []scheduler.RunFilter{
			{}, {Outcome: "failed"}, {Outcome: scheduler.OutcomePending}, {Since: time.UnixMilli(1_763_726_400_000 + 10*60_000)}, {Job: jobOf(7)}, {Outcome: "lost"},
		} {
			whole := must[scheduler.RunList](t)(in.List(ctx, f))
			if whole.Matched != len(whole.Runs) {
				t.Errorf("%+v: %d matched, %d shown", f, whole.Matched, len(whole.Runs))
			}
			for _, f.Limit = range []int{1, 5, 149, 301, 1000, 5000} {
				some := must[scheduler.RunList](t)(in.List(ctx, f))
				if want := whole.Runs[:min(f.Limit, whole.Matched)]; some.Matched != whole.Matched || !same(some.Runs, want) {
					t.Errorf("%+v: %d of %d matched, others than in the whole list, %d of %d", f, len(some.Runs), some.Matched, len(want), whole.Matched)
				}
			}
		}
	})
}

// A word that is no outcome is not one that no run has.
func TestListRefusesOtherWords(t *testing.T) {
	onBooks(t, func(t *testing.T, server *redistest.Embedded) {
		in, _ := manyBooks(t, server, 1, 3)
		for _, word := range []string{"timedout", "Failed", "pending,failed"} {
			_, err := in.Runs(t.Context(), scheduler.RunFilter{Outcome: word})
			refused(t, err, scheduler.ErrRefused, word, "timed_out", "or pending")
		}
		for _, word := range []string{"timed_out", "pending", "running", "superseded"} {
			must[[]scheduler.RunView](t)(in.Runs(t.Context(), scheduler.RunFilter{Outcome: word}))
		}
	})
}

// same compares what people see of runs.
func same(a, b []scheduler.RunView) bool {
	as, _ := json.Marshal(a)
	bs, _ := json.Marshal(b)
	return len(a) == len(b) && reflect.DeepEqual(as, bs)
}

// The end of the caller's context is no word about Redis, which has answered.
func TestLookEndsWithItsContext(t *testing.T) {
	onBooks(t, func(t *testing.T, server *redistest.Embedded) {
		in, seen := manyBooks(t, server, 3, 20)
		for name, f := range map[string]func(ctx context.Context) error{
			"look for run nope": func(ctx context.Context) error { return second(in.Run(ctx, "nope")) },
			"cancel run nope":   func(ctx context.Context) error { return second(in.Cancel(ctx, "nope", scheduler.CancelOptions{})) },
			"rerun nope":        func(ctx context.Context) error { return second(in.Rerun(ctx, "nope")) },
			"list runs":         func(ctx context.Context) error { return second(in.List(ctx, scheduler.RunFilter{})) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			seen.at = func(name string) error {
				if name != "lrange" {
					return nil
				}
				<-ctx.Done()
				return os.ErrDeadlineExceeded // as a connection says it
			}
			err := f(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, locking.ErrUnreachable) || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		seen.at = func(string) error { return os.ErrDeadlineExceeded }
		if _, err := in.Run(t.Context(), "nope"); !errors.Is(err, locking.ErrUnreachable) {
			t.Errorf("an outage: %v", err)
		}
		seen.at = nil
	})
}

// Whoever waits for a run looks at its record alone, and seldom if it takes long.
func TestWaitReadsLittle(t *testing.T) {
	onBooks(t, func(t *testing.T, server *redistest.Embedded) {
		in, seen := manyBooks(t, server, 3, 20)
		id := must[string](t)(in.Trigger(t.Context(), jobOf(1), scheduler.TriggerOptions{At: time.Now().Add(time.Hour)}))
		must[scheduler.RunView](t)(in.Run(t.Context(), id))
		once := seen.since()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := in.Wait(ctx, id)
		refused(t, err, context.DeadlineExceeded, id)
		got := seen.since()
		if got["hgetall"] > once["hgetall"] || got["lrange"] > once["lrange"] {
			t.Errorf("a minute read %v, one look %v", got, once)
		}
		if n := got["hmget"] / 2; n < 60 || n > 100 {
			t.Errorf("%d looks in a minute", n)
		}
	})
}

// Between two looks of somebody who has waited for long a run can be handed back more than once.
func TestWaitFollowsQuickHandBacks(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		time.Sleep(time.Until(time.UnixMilli(b.def.Cursor)))
		b.claim(ledger.Granted, ledger.Claim{Run: "r1", From: b.def.Cursor, Tick: b.def.Cursor, Next: b.def.Cursor + 60_000})
		wait, run := awaited(t, c.inspector(), "r1"), "r1"
		for range 30 {
			time.Sleep(time.Second)
			must[[]locking.RenewAnswer](t)(b.Renew(t.Context(), []locking.Renewal{{Name: "job", Owner: run, TTL: 5 * time.Second}}))
		}
		for range 3 {
			run = b.handBack(run)
			b.claim(ledger.Granted, ledger.Claim{Run: run, Pending: true})
		}
		time.Sleep(2 * time.Second)
		for range 3 {
			run = b.handBack(run)
			b.claim(ledger.Granted, ledger.Claim{Run: run, Pending: true})
		}
		b.settle(run, jobs.OutcomeSucceeded, false)
		if v := wait(); v.Run != run || v.Outcome != "succeeded" {
			t.Errorf("got %+v, want run %s", v, run)
		}
	})
}

func second[T any](_ T, err error) error { return err }
