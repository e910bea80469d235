package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
)

// Verify finds what somebody did to the books.
func TestVerifyFindsTampering(t *testing.T) {
	row := func(rows []string, i int, change func(f []string)) []string {
		f := strings.Split(rows[i], "|")
		change(f)
		return slices.Concat(rows[:i], []string{strings.Join(f, "|")}, rows[i+1:])
	}
	for name, c := range map[string]struct {
		want   string
		change func(rows []string) []string // of five: run, missed, run, skipped, run
	}{
		"a run's row is gone":     {"gap: nothing recorded from 2025-11-21T12:00:05.000Z to 2025-11-21T12:00:06.000Z", func(r []string) []string { return slices.Delete(r, 2, 3) }},
		"a range is gone":         {"gap: nothing recorded from 2025-11-21T12:00:02.000Z to 2025-11-21T12:00:05.000Z", func(r []string) []string { return slices.Delete(r, 1, 2) }},
		"the last row is gone":    {"the chain ends at 2025-11-21T12:00:08.000Z, the cursor stands at 2025-11-21T12:00:09.000Z", func(r []string) []string { return r[:4] }},
		"the first row is gone":   {"gap: nothing recorded from 2025-11-21T12:00:01.000Z", func(r []string) []string { return r[1:] }},
		"all rows are gone":       {"the chain ends at 2025-11-21T12:00:01.000Z", func([]string) []string { return nil }},
		"a range reaches too far": {"overlap: run r5 of tick 2025-11-21T12:00:05.000Z begins at 2025-11-21T12:00:05.000Z, the step before it ended at 2025-11-21T12:00:06.000Z", func(r []string) []string { return row(r, 1, func(f []string) { f[3] = fmt.Sprint(noon + 6000) }) }},
		"a row twice":             {"overlap: ", func(r []string) []string { return append(r, r[0]) }},
		"a run twice":             {"twice: run r5", func(r []string) []string { return row(r, 4, func(f []string) { f[10] = "r5" }) }},
		"a token twice": {"twice: token ", func(r []string) []string {
			return row(r, 4, func(f []string) { f[11] = strings.Split(r[2], "|")[11] })
		}},
		"a tick twice": {"twice: tick 2025-11-21T12:00:05.000Z shard 0 attempt 1", func(r []string) []string {
			return row(r, 4, func(f []string) { f[5] = fmt.Sprint(noon + 5000) })
		}},
		"a row cut in half":    {"does not understand", func(r []string) []string { return slices.Concat(r[:2], []string{r[2][:30]}, r[3:]) }},
		"an outcome made up":   {"does not understand", func(r []string) []string { return row(r, 2, func(f []string) { f[16] = "splendid" }) }},
		"a number made up":     {"does not understand", func(r []string) []string { return row(r, 2, func(f []string) { f[5] = "noon" }) }},
		"a range's number":     {"does not understand", func(r []string) []string { return row(r, 1, func(f []string) { f[7] = "three" }) }},
		"a range's outcome":    {"does not understand", func(r []string) []string { return row(r, 3, func(f []string) { f[8] = "splendid" }) }},
		"a range cut in half":  {"does not understand", func(r []string) []string { return slices.Concat(r[:1], []string{r[1][:20]}, r[2:]) }},
		"a row of a new kind":  {"does not understand", func(r []string) []string { return append(r, "1|X|1|2") }},
		"nothing was tampered": {"", func(r []string) []string { return r }},
	} {
		t.Run(name, func(t *testing.T) {
			useScripts(t, steered...)
			r := realRig(t, oneConfig)
			wellKept(t, r)
			key := r.led.keys[0].history + "a"
			changed := c.change(must(r.client.LRange(t.Context(), key, 0, -1).Result()))
			r.client.Del(t.Context(), key)
			for _, record := range changed {
				r.client.RPush(t.Context(), key, record)
			}
			found := must(r.led.Verify(t.Context(), "a"))
			if c.want == "" && len(found) == 0 {
				return
			}
			if c.want == "" || !slices.ContainsFunc(found, func(v Violation) bool { return v.Job == "a" && strings.Contains(v.What, c.want) }) {
				t.Errorf("found %+v, want %q", found, c.want)
			}
			if others := must(r.led.Verify(t.Context(), "b")); len(others) > 0 {
				t.Errorf("found in another job: %+v", others)
			}
		})
	}
}

// wellKept makes job a's history of five rows: a run, three missed ticks, a run, two skipped
// ticks, a run; and job b with a run in flight.
func wellKept(t *testing.T, r *rig) {
	t.Helper()
	r.create(t, "a")
	r.create(t, "b")
	r.pass(t, 5*time.Second)
	r.want(t, Granted, tickClaim("b", "rb", 1))
	r.runOne(t, "a", 1)
	c := tickClaim("a", "r5", 2)
	c.Missed, c.Until, c.Tick, c.Next = 3, noon+4000, noon+5000, noon+6000
	r.want(t, Granted, c)
	r.settle(t, Settled, "a", "r5", jobs.OutcomeSucceeded)
	if err := r.led.Trigger(t.Context(), "a", "t", nil); err != nil {
		t.Fatal(err)
	}
	r.want(t, Granted, pendingClaim("a", "t"))
	r.pass(t, time.Minute)
	r.want(t, Skipped, tickClaim("a", "r6", 6))
	r.want(t, Skipped, tickClaim("a", "r7", 7))
	r.runBy(t, "t")
	r.runOne(t, "a", 8)
	rows := must(r.client.LRange(t.Context(), r.led.keys[0].history+"a", 0, -1).Result())
	rows = slices.DeleteFunc(rows, func(s string) bool { return strings.Contains(s, "|manual|") })
	r.client.Del(t.Context(), r.led.keys[0].history+"a")
	for _, s := range rows { // without the run by hand, which is no step of the chain
		r.client.RPush(t.Context(), r.led.keys[0].history+"a", s)
	}
	r.sound(t)
}

func (r *rig) runBy(t *testing.T, run string) {
	t.Helper()
	r.settle(t, Settled, "a", run, jobs.OutcomeSucceeded)
}

func TestVerifyFindsOtherTampering(t *testing.T) {
	for name, c := range map[string]struct {
		want   string
		change func(ctx context.Context, c *redis.Client, k keys) error
	}{
		"the cursor went on": {"the cursor stands at 2025-11-21T12:00:10.000Z", func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.jobs, "a", strings.Replace(c.HGet(ctx, k.jobs, "a").Val(), fmt.Sprint("1|", noon+9000), fmt.Sprint("1|", noon+10_000), 1)).Err()
		}},
		"the cursor ended": {"the cursor stands at never", func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.jobs, "a", strings.Replace(c.HGet(ctx, k.jobs, "a").Val(), fmt.Sprint("1|", noon+9000), "1|", 1)).Err()
		}},
		"a run in flight is gone": {"the chain ends at", func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HDel(ctx, k.runs, "rb").Err()
		}},
		"a run is in flight twice": {"overlap: run r", func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.runs, "rc", c.HGet(ctx, k.runs, "rb").Val()).Err()
		}},
		"a run in flight cannot be read": {"run rb: ", func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.runs, "rb", "1|x").Err()
		}},
		"a pending run cannot be read": {"pending run p: ", func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.waiting, "p", "1|x").Err()
		}},
		"an entry cannot be read": {"does not understand", func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.jobs, "b", "0").Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			useScripts(t, steered...)
			r := realRig(t, oneConfig)
			wellKept(t, r)
			if err := c.change(t.Context(), r.client, r.led.keys[0]); err != nil {
				t.Fatal(err)
			}
			found := must(r.led.Verify(t.Context(), ""))
			if !slices.ContainsFunc(found, func(v Violation) bool { return strings.Contains(v.What, c.want) }) {
				t.Errorf("found %+v, want %q", found, c.want)
			}
		})
	}
}

func TestChain(t *testing.T) {
	run := func(prev, next, token int64) Row {
		return Row{Prev: prev, Next: next, Tick: prev, Run: fmt.Sprint("r", token), Token: token, Shards: 1, Attempt: 1}
	}
	span := func(prev, next int64) Row { return Row{Ranged: true, Prev: prev, Next: next, Tick: prev} }
	for name, c := range map[string]struct {
		base, cursor int64
		rows         []Row
		open         []Lease
		wrong        int
	}{
		"nothing yet":                            {base: 10, cursor: 10},
		"never anything":                         {},
		"one run":                                {base: 10, cursor: 20, rows: []Row{run(10, 20, 1)}},
		"a run in flight":                        {base: 10, cursor: 20, open: []Lease{{Prev: 10, Next: 20}}},
		"of another job":                         {base: 10, cursor: 20, open: []Lease{{Job: "b", Prev: 10, Next: 20}}, wrong: 1},
		"a run that ended late":                  {base: 10, cursor: 30, rows: []Row{span(20, 30), run(10, 20, 1)}},
		"one that ended after its time":          {base: 20, cursor: 30, rows: []Row{span(20, 30), run(10, 20, 1)}},
		"one still in flight from before":        {base: 20, cursor: 30, rows: []Row{span(20, 30)}, open: []Lease{{Prev: 10, Next: 20}}},
		"a run by hand":                          {base: 10, cursor: 10, rows: []Row{{Tick: 15, Run: "t", Token: 1, Request: "t"}}},
		"a step back":                            {base: 1000, cursor: 70, rows: []Row{span(1000, 60), run(60, 70, 1)}},
		"back and forth":                         {base: 50, cursor: 80, rows: []Row{run(50, 1000, 1), span(1000, 60), run(60, 70, 2), span(70, 1000), span(1000, 75), run(75, 80, 3)}},
		"a step back under a run":                {base: 50, cursor: 70, rows: []Row{span(1000, 60), run(50, 1000, 1)}, open: []Lease{{Prev: 60, Next: 70}}},
		"a step to where it stood":               {base: 50, cursor: 70, rows: []Row{span(60, 60), run(60, 70, 2), run(50, 60, 1)}},
		"an end":                                 {base: 50, cursor: 0, rows: []Row{run(50, 0, 1)}},
		"an end, all trimmed":                    {base: 0, cursor: 0, rows: []Row{run(50, 60, 1)}},
		"an end and a new schedule":              {base: 50, cursor: 90, rows: []Row{span(0, 80), run(50, 0, 1), run(80, 90, 2)}},
		"a gap behind a step back":               {base: 1000, cursor: 80, rows: []Row{span(1000, 60), run(70, 80, 1)}, wrong: 1},
		"a gap before a step back":               {base: 50, cursor: 70, rows: []Row{span(1000, 60), run(60, 70, 1)}, wrong: 1},
		"a step back that took a tick again":     {base: 50, cursor: 60, rows: []Row{run(50, 60, 1), span(60, 50), run(50, 60, 2)}, wrong: 3},
		"two runs from one cursor":               {base: 50, cursor: 60, rows: []Row{run(50, 60, 1), run(50, 60, 2)}, wrong: 2},
		"a cursor that went on":                  {base: 50, cursor: 70, rows: []Row{run(50, 60, 1)}, wrong: 1},
		"a cursor that ended with no last tick":  {base: 50, cursor: 0, rows: []Row{run(50, 60, 1)}, wrong: 1},
		"a token twice, and a run":               {base: 50, cursor: 70, rows: []Row{run(50, 60, 1), run(60, 70, 1)}, wrong: 2},
		"the same tick by hand is another thing": {base: 50, cursor: 60, rows: []Row{run(50, 60, 1), {Tick: 50, Run: "t", Token: 2, Request: "t", Attempt: 1, Shards: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := Chain(Entry{Base: c.base, Cursor: c.cursor}, c.rows, c.open); len(wrong) != c.wrong {
				t.Errorf("found %q, want %d", wrong, c.wrong)
			}
		})
	}
}

// FuzzRecords: what stands in Redis may be anything; reading it is an error at worst.
func FuzzRecords(f *testing.F) {
	for _, s := range []string{"", "1", "1|R|1|2|3|4|0|1|1|1|r|5|n|a|schedule||succeeded||6||e|f", "1|S|1|2|3|4|5|6|missed|late",
		"1|1|d|v|1|r|o|1|1", "1|2|0|j|1|0|1|1|9|n|a|5|1|2|schedule||7|p|q", "1|j|1|0|1|1|1|2|manual|t|3|p", "2|x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, parse := range map[string]func() error{
			"entry":   func() error { _, err := parseEntry("j", s); return err },
			"lease":   func() error { _, err := parseLease("r", s); return err },
			"pending": func() error { _, err := parsePending("r", s); return err },
			"row":     func() error { _, err := parseRow("j", s); return err },
		} {
			if err := parse(); err != nil && failed(err) != "foreign" {
				t.Errorf("%s %q: %v", name, s, err)
			}
		}
	})
}
