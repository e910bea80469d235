package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
)

// TestVerifyFindsWhatWasPlanted changes a history that the ledger wrote, and wants the broken promise
// named, with the records that show it.
func TestVerifyFindsWhatWasPlanted(t *testing.T) {
	for name, c := range map[string]struct {
		promise, want string
		evidence      []string
		change        func(t *testing.T, rows []string) []string
	}{
		"a double": {P1, "twice: tick 2025-11-21T12:00:05.000Z shard 0 attempt 1", []string{"run r5, tick 2025-11-21T12:00:05.000Z", "run copy, tick 2025-11-21T12:00:05.000Z"},
			func(t *testing.T, rows []string) []string {
				r := rows[place(t, rows, "|r5|")]
				return append(rows, field(field(field(r, 10, "copy"), 11, "1763726400000009"), 12, "n2"))
			}},
		"a gap: a run's row is gone": {P2, "gap: nothing recorded from 2025-11-21T12:00:01.000Z to 2025-11-21T12:00:02.000Z", []string{"chain begins at 2025-11-21T12:00:01.000Z", "missed(late), ticks 2025-11-21T12:00:02.000Z"},
			func(t *testing.T, rows []string) []string {
				i := place(t, rows, "|r1|")
				return slices.Delete(rows, i, i+1)
			}},
		"a gap: a range is gone": {P2, "gap: nothing recorded from 2025-11-21T12:00:02.000Z to 2025-11-21T12:00:05.000Z", []string{"run r1, ", "run r5, "},
			func(t *testing.T, rows []string) []string {
				i := place(t, rows, "|late|")
				return slices.Delete(rows, i, i+1)
			}},
		"a gap: a range shortened by a tick": {P2, "the tick after the last of them is 2025-11-21T12:00:04.000Z, and the cursor went to 2025-11-21T12:00:05.000Z", []string{"missed(late), ticks 2025-11-21T12:00:02.000Z to 2025-11-21T12:00:03.000Z, 2 of them"},
			func(t *testing.T, rows []string) []string {
				i := place(t, rows, "|late|")
				rows[i] = field(field(rows[i], 6, noon+3000), 7, 2)
				return rows
			}},
		"a gap: a range of fewer than there are": {P2, "has 3 ticks", []string{"2 of them"}, func(t *testing.T, rows []string) []string {
			i := place(t, rows, "|late|")
			rows[i] = field(rows[i], 7, 2)
			return rows
		}},
		"an attempt has no record": {P1, "attempt 3 and no record of attempt 2", []string{"attempt 1, ", "attempt 3, "}, func(t *testing.T, rows []string) []string {
			i := place(t, rows, "|"+Successor(Successor("r7"))+"|")
			return slices.Delete(rows, i, i+1)
		}},
		"a run of another tick": {P2, "fills the step from 2025-11-21T12:00:28.000Z, which is another tick", []string{"run s3, tick 2025-11-21T12:00:26.000Z"}, func(t *testing.T, rows []string) []string {
			i := place(t, rows, "|s3|")
			rows[i] = field(rows[i], 5, noon+26_000)
			return rows
		}},
		"tokens change places": {P3, "has token", []string{"run r1, ", "run r5, "}, func(t *testing.T, rows []string) []string {
			i, j := place(t, rows, "|r1|"), place(t, rows, "|r5|")
			one, two := strings.Split(rows[i], "|")[11], strings.Split(rows[j], "|")[11]
			rows[i], rows[j] = field(rows[i], 11, two), field(rows[j], 11, one)
			return rows
		}},
		"tokens of attempts change places": {P3, "attempt 2 has a smaller token than attempt 1", []string{"attempt 1, ", "attempt 2, "}, func(t *testing.T, rows []string) []string {
			i, j := place(t, rows, "|"+Successor("r7")+"|"), place(t, rows, "|"+Successor(Successor("r7"))+"|")
			one, two := strings.Split(rows[i], "|")[11], strings.Split(rows[j], "|")[11]
			rows[i], rows[j] = field(rows[i], 11, two), field(rows[j], 11, one)
			return rows
		}},
		"a tick that is none": {P2, "2025-11-21T12:00:05.500Z is no tick of @every 1s", []string{"run r5, tick 2025-11-21T12:00:05.500Z"}, func(t *testing.T, rows []string) []string {
			i, j := place(t, rows, "|late|"), place(t, rows, "|r5|")
			rows[i] = field(rows[i], 3, noon+5500)
			rows[j] = field(field(rows[j], 2, noon+5500), 5, noon+5500)
			return rows
		}},
		"the schedule was another": {P2, "is no tick of @every 7m", nil, func(t *testing.T, rows []string) []string {
			i := place(t, rows, "|definition replaced|@every 1s")
			rows[i] = strings.Replace(rows[i], "@every 1s", "@every 7m", 1)
			return rows
		}},
		"nobody knows what it was": {Books, "cannot be recomputed", []string{"noted often"}, func(t *testing.T, rows []string) []string {
			i := place(t, rows, "|definition replaced|@every 1s")
			rows[i] = strings.Replace(rows[i], "@every 1s", "often", 1)
			return rows
		}},
		"a tick was left behind": {P2, "and the tick 2025-11-21T12:00:27.000Z before that is not accounted for", nil, func(t *testing.T, rows []string) []string {
			i := place(t, rows, "|definition replaced|@every 1s")
			rows[i] = field(field(rows[i], 6, noon+26_000), 7, 5)
			return rows
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := verified(t)
			k.rewrite(func(rows []string) []string { return c.change(t, rows) })
			x := must(k.led.Examine(t.Context(), Scope{}))
			i := slices.IndexFunc(x.Violations, func(v Violation) bool {
				return v.Job == "a" && v.Promise == c.promise && strings.Contains(v.What, c.want)
			})
			if i < 0 {
				t.Fatalf("want %s %q, found\n%s", c.promise, c.want, show(x.Violations))
			}
			for _, e := range c.evidence {
				if !slices.ContainsFunc(x.Violations[i].Evidence, func(s string) bool { return strings.Contains(s, e) }) {
					t.Errorf("no evidence with %q in %q", e, x.Violations[i].Evidence)
				}
			}
			if slices.ContainsFunc(x.Violations, func(v Violation) bool { return v.Job != "a" }) || len(x.LeftAlone) > 0 {
				t.Errorf("another job is accused: %s %v", show(x.Violations), x.LeftAlone)
			}
			if others := must(k.led.Examine(t.Context(), Scope{Job: "b"})); len(others.Violations) > 0 || others.Jobs != 1 {
				t.Errorf("of b: %+v", others)
			}
			if later := must(k.led.Examine(t.Context(), Scope{Since: noon + 60_000})); slices.ContainsFunc(later.Violations, func(v Violation) bool { return v.Promise != Books }) {
				t.Errorf("nothing of it is so late: %s", show(later.Violations))
			}
			if all := must(k.led.Examine(t.Context(), Scope{Since: noon + 1000})); len(all.Violations) != len(x.Violations) {
				t.Errorf("all of it is so late: %s", show(all.Violations))
			}
		})
	}
}

// TestVerifyFindsOtherTampering: of entries and runs in flight.
func TestVerifyFindsOtherTampering(t *testing.T) {
	for name, c := range map[string]struct {
		promise, want string
		change        func(ctx context.Context, c *redis.Client, k keys, entry string) error
	}{
		"the cursor went on": {P2, "the cursor stands at 2025-11-21T12:00:34.000Z", func(ctx context.Context, c *redis.Client, k keys, e string) error {
			return c.HSet(ctx, k.jobs, "a", field(e, 1, noon+34_000)).Err()
		}},
		"the cursor ended": {P2, "the cursor stands at never", func(ctx context.Context, c *redis.Client, k keys, e string) error {
			return c.HSet(ctx, k.jobs, "a", field(e, 1, "")).Err()
		}},
		"a token was never granted": {P3, "is larger than the last one granted, 7", func(ctx context.Context, c *redis.Client, k keys, e string) error {
			return c.HSet(ctx, k.jobs, "a", field(e, 4, 7)).Err()
		}},
		"more rows than were counted": {Books, "superseded, and only 0 were counted", func(ctx context.Context, c *redis.Client, k keys, e string) error {
			return c.HSet(ctx, k.jobs, "a", field(e, 12, "missed=99,paused=99,skipped=99,failed=99,succeeded=99,timed_out=99,abandoned=99")).Err()
		}},
		"the definition is another": {Books, "the definition stored is ", func(ctx context.Context, c *redis.Client, k keys, _ string) error {
			return c.HSet(ctx, k.defs, "a", strings.Replace(c.HGet(ctx, k.defs, "a").Val(), "ttl_ms\":15000", "ttl_ms\":16000", 1)).Err()
		}},
		"a run in flight is gone": {P2, "the chain ends at", func(ctx context.Context, c *redis.Client, k keys, _ string) error {
			return c.HDel(ctx, k.runs, "last-a").Err()
		}},
		"and the job is held for it": {Books, "the job is held for run last-a, and there is no such run", func(ctx context.Context, c *redis.Client, k keys, _ string) error {
			return c.HDel(ctx, k.runs, "last-a").Err()
		}},
		"and its record is another job's": {Books, "the job is held for run last-a, and there is no such run", func(ctx context.Context, c *redis.Client, k keys, _ string) error {
			return c.HSet(ctx, k.runs, "last-a", c.HGet(ctx, k.runs, "last-b").Val()).Err()
		}},
		"a run is in flight twice": {P1, "twice: tick 2025-11-21T12:00:30.000Z shard 0 attempt 2", func(ctx context.Context, c *redis.Client, k keys, _ string) error {
			return c.HSet(ctx, k.runs, "again", c.HGet(ctx, k.runs, "last-a").Val()).Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := verified(t)
			keys := k.led.keys[0]
			if err := c.change(t.Context(), k.client, keys, k.client.HGet(t.Context(), keys.jobs, "a").Val()); err != nil {
				t.Fatal(err)
			}
			found := must(k.led.Verify(t.Context(), ""))
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Promise == c.promise && strings.Contains(v.What, c.want) }) {
				t.Errorf("want %s %q, found %s", c.promise, c.want, show(found))
			}
		})
	}
}

func TestExamineUnknownJob(t *testing.T) {
	k := verified(t)
	for _, f := range []func() error{
		func() error { _, err := k.led.Examine(t.Context(), Scope{Job: "nobody"}); return err },
		func() error { _, err := k.led.Verify(t.Context(), "nobody"); return err },
	} {
		if err := f(); !errors.Is(err, ErrUnknownJob) || !strings.Contains(err.Error(), "nobody") {
			t.Errorf("got %v, want ErrUnknownJob", err)
		}
	}
}

// TestAuditWithoutASchedule: a job that follows another has the other one's steps; its ticks run once all the same.
func TestAuditWithoutASchedule(t *testing.T) {
	def := jobs.Definition{V: 1, Name: "b", After: "a", TTL: 5000}
	run := func(tick, token int64, run string) Row {
		return Row{Job: "b", Prev: tick, Next: tick + 7, Tick: tick, At: tick + 9, Shards: 1, Attempt: 1, Run: run, Token: token, Trigger: "after", Outcome: jobs.OutcomeSucceeded}
	}
	e := Entry{Job: "b", Digest: def.Digest(), Token: 9, Base: 55, Counts: map[jobs.Outcome]int64{jobs.OutcomeSucceeded: 9, jobs.OutcomeSkipped: 9}}
	skipped := Row{Job: "b", Ranged: true, Prev: 100, Next: 900, Tick: 100, Until: 800, Count: 4, At: 900, Outcome: jobs.OutcomeSkipped, Reason: ReasonUpstream, Note: "failed"}
	rows := []Row{run(100, 1, "r1"), skipped, run(300, 3, "r3"), run(200, 2, "r2")}
	if wrong := Audit(e, def, rows, nil); len(wrong) > 0 {
		t.Errorf("found %s", show(wrong))
	}
	for want, more := range map[string]Row{"twice: tick": run(300, 4, "r4"), "twice: token": run(400, 3, "r4"), "twice: run": run(400, 4, "r3"), "larger than the last": run(400, 10, "r4")} {
		if wrong := Audit(e, def, append(slices.Clone(rows), more), nil); len(wrong) != 1 || !strings.Contains(wrong[0].What, want) {
			t.Errorf("want %s, found %s", want, show(wrong))
		}
	}
}

// TestAuditOfNoSchedule: a definition can be read whose schedule this version does not know.
func TestAuditOfNoSchedule(t *testing.T) {
	def := jobs.Definition{V: 1, Name: "b", Schedule: "@often", TTL: 5000}
	wrong := Audit(Entry{Job: "b", Digest: def.Digest(), Cursor: 5, Base: 5}, def, nil, nil)
	if len(wrong) != 1 || wrong[0].Promise != Books || !strings.Contains(wrong[0].What, "its schedule cannot be recomputed") {
		t.Errorf("found %s", show(wrong))
	}
	def.Schedule = "@every 1s"
	wrong = Audit(Entry{Job: "b", Digest: def.Digest(), Cursor: 5, Base: 5}, def, nil, nil)
	if len(wrong) != 1 || wrong[0].Promise != P2 || !strings.Contains(wrong[0].What, "which is no tick of @every 1s") {
		t.Errorf("found %s", show(wrong))
	}
}

// TestExamineManyJobs: a partition is read page by page, and what is strange in it is named once.
func TestExamineManyJobs(t *testing.T) {
	k := verified(t)
	for i := range 2 * BatchMax {
		def := jobs.Job{Name: fmt.Sprint("job-", i), Schedule: "@daily"}.Definition()
		must(k.led.Define(t.Context(), k.now, []Definition{{Job: def.Name, Digest: def.Digest(), Text: must(json.Marshal(def)), Cursor: noon + 12*3600_000}}))
	}
	k.client.HSet(t.Context(), k.led.keys[0].runs, "strange", "2|x")
	x := must(k.led.Examine(t.Context(), Scope{}))
	if x.Jobs != 2*BatchMax+2 || len(x.LeftAlone) != 1 || len(x.Violations) > 0 {
		t.Errorf("%d jobs, left alone %v, found %s", x.Jobs, x.LeftAlone, show(x.Violations))
	}
}
