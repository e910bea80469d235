package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// backup is a server's content: hashes, lists, sorted sets, strings by key.
type backup map[string]any

func (r *rig) backup(tb testing.TB) backup {
	tb.Helper()
	return backupOf(tb, r.client)
}

// backupOf reads everything that a server holds, in two round trips.
func backupOf(tb testing.TB, client *redis.Client) backup {
	tb.Helper()
	ctx := tb.Context()
	names := must(client.Keys(ctx, "*").Result())
	kinds := client.Pipeline()
	for _, key := range names {
		kinds.Type(ctx, key)
	}
	pipe := client.Pipeline()
	for i, kind := range must(kinds.Exec(ctx)) {
		switch kind.(*redis.StatusCmd).Val() {
		case "hash":
			pipe.HGetAll(ctx, names[i])
		case "list":
			pipe.LRange(ctx, names[i], 0, -1)
		case "zset":
			pipe.ZRangeWithScores(ctx, names[i], 0, -1)
		case "string":
			pipe.Get(ctx, names[i])
		default:
			tb.Fatalf("%s is no kind of key that the ledger writes", names[i])
		}
	}
	all := backup{}
	for i, cmd := range must(pipe.Exec(ctx)) {
		switch c := cmd.(type) {
		case *redis.MapStringStringCmd:
			all[names[i]] = c.Val()
		case *redis.StringSliceCmd:
			all[names[i]] = c.Val()
		case *redis.ZSliceCmd:
			all[names[i]] = c.Val()
		case *redis.StringCmd:
			all[names[i]] = c.Val()
		}
	}
	return all
}

// restore makes the server hold that, and nothing else. Its clock and its identity are to be set
// anew.
func (r *rig) restore(tb testing.TB, all backup) {
	tb.Helper()
	ctx, pipe := tb.Context(), r.client.Pipeline()
	pipe.FlushAll(ctx)
	for key, value := range all {
		switch v := value.(type) {
		case map[string]string:
			pipe.HSet(ctx, key, v)
		case []string:
			pipe.RPush(ctx, key, v)
		case []redis.Z:
			pipe.ZAdd(ctx, key, v...)
		case string:
			pipe.Set(ctx, key, v, 0)
		}
	}
	must(pipe.Exec(ctx))
}

// failover replaces the server by one with the backup's records only. Calls notice after 200 ms.
func (r *rig) failover(t *testing.T, all backup) {
	t.Helper()
	us, identity := r.now*1000, r.identity
	r.restore(t, all)
	r.clock(t, us+200_000, string(identity[0]+1)+identity[1:])
}

// granted claims a run, and returns its node's copy of the run.
func (r *rig) granted(t *testing.T, c claim.Claim) ledger.Run {
	t.Helper()
	return r.grantedTo(t, node, c)
}

func (r *rig) grantedTo(t *testing.T, by claim.Claimer, c claim.Claim) ledger.Run {
	t.Helper()
	a := must(claim.Send(t.Context(), r.led, by, r.now, []claim.Claim{c}))[0]
	if a.Verdict != claim.Granted {
		t.Fatalf("claim %+v: %+v", c, a)
	}
	return c.GrantedRun(a, by, r.now)
}

// of is a node's report of a run, whose job ticks each second; change the report with the
// functions.
func of(l ledger.Run, change ...func(*epoch.Assertion)) epoch.Assertion {
	a := epoch.Assertion{Digest: "d-second", Run: l}
	for _, f := range change {
		f(&a)
	}
	return a
}

// gap gives up the ticks from one second after noon to another; none when the second is before the
// first.
func gap(first, last int64) func(*epoch.Assertion) {
	return func(a *epoch.Assertion) {
		a.Gap = &ledger.SkippedRange{First: noon + first*1000, Last: noon + max(first, last)*1000, Count: last - first + 1}
	}
}

// reopen adds what a shard's report needs to open its tick.
func reopen(params ...string) func(*epoch.Assertion) {
	return func(a *epoch.Assertion) { a.Reopen, a.Params, a.Next = true, params, a.Run.Tick+1000 }
}

// says reports a run twice, and compares the answers: the repeat changes nothing but the lease.
func (r *rig) says(t *testing.T, want ledger.Status, a epoch.Assertion) epoch.Asserted {
	t.Helper()
	got := must(epoch.Reassert(t.Context(), r.led.At(r.epoch()), r.now, []epoch.Assertion{a}))[0]
	if got.Status != want {
		t.Fatalf("of %s it is said: %+v, want %s", a.Run.ID, got, want)
	}
	again := map[ledger.Status]ledger.Status{epoch.Restored: epoch.Known}[want]
	if again == "" {
		again = want
	}
	before := r.unleased(t)
	if got := must(epoch.Reassert(t.Context(), r.led.At(r.epoch()), r.now, []epoch.Assertion{a}))[0]; got.Status != again {
		t.Fatalf("of %s it is said again: %+v, want %s", a.Run.ID, got, again)
	}
	if wrong := differences(before, r.unleased(t)); len(wrong) > 0 {
		t.Fatalf("saying it again changed %s", strings.Join(wrong, "\n"))
	}
	return got
}

// unleased is a dump without the parts that a renewal changes.
func (r *rig) unleased(t *testing.T) map[string]string {
	t.Helper()
	all := dump(t, r.client)
	delete(all, r.led.Keys[0].Leases)
	delete(all, r.led.Keys[0].Runs)
	for _, l := range must(query.InFlight(t.Context(), r.led, "a")) {
		l.Until, l.Beat = 0, 0
		all["run "+l.ID] = fmt.Sprintf("%+v", l)
	}
	return all
}

// ends settles a run as its node does, by its token.
func (r *rig) ends(t *testing.T, want ledger.Status, l ledger.Run, outcome jobs.Outcome) {
	t.Helper()
	report := settle.Report{Job: l.Job, Run: l.ID, Token: l.Token, Outcome: outcome, Started: l.Granted, Ended: r.now, Tries: 1}
	for range 2 {
		if got := must(settle.Settle(t.Context(), r.led.At(r.epoch()), []settle.Report{report})); got[0] != want {
			t.Fatalf("settle of %s: %s, want %s", l.ID, got[0], want)
		}
	}
}

// renews renews a run as its node does, by its token.
func (r *rig) renews(t *testing.T, want locking.RenewAnswer, l ledger.Run) {
	t.Helper()
	got, err := settle.Renew(t.Context(), r.led.At(r.epoch()), []locking.Renewal{{Name: l.Job, Owner: l.ID, Token: l.Token, TTL: ttl}})
	if err != nil || got[0] != want {
		t.Fatalf("renewal of %s: %v, %v, want %v", l.ID, got, err, want)
	}
}

// whole checks that the audit finds nothing in any job, and that the sweep finds everything it has
// to.
func (r *rig) whole(t *testing.T) {
	t.Helper()
	r.sound(t)
	if wrong := r.indexes(t); len(wrong) > 0 {
		t.Fatalf("the indexes: %q", wrong)
	}
}
