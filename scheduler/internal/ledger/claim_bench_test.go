package ledger_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// benchJobs is how many jobs there are; all are claimed, in batches, before their runs are settled.
// Each keeps benchKeep rows, and one in sixteen has its history trimmed by a settle: so are jobs
// that have run for long.
const benchJobs, benchKeep = 4800, 32

// BenchmarkClaim: one operation is one batch. redis-µs/claim is the time that Redis itself spent on
// half of the batches at most, and redis-least the least, which other work on the machine does not
// move.
func BenchmarkClaim(b *testing.B) { benchmarkSizes(b, true) }

// BenchmarkSettle is the same for settling.
func BenchmarkSettle(b *testing.B) { benchmarkSizes(b, false) }

func benchmarkSizes(b *testing.B, claims bool) {
	for _, v := range []struct {
		size     int
		overlap  jobs.Overlap
		followed bool
	}{{size: 1}, {size: 10}, {size: 50}, {size: 200}, {50, jobs.OverlapQueue, false}, {50, jobs.OverlapAllow, false}, {50, jobs.OverlapSkip, true}} {
		name := strconv.Itoa(v.size)
		if v.followed {
			name += "-followed"
		} else if v.overlap != jobs.OverlapSkip {
			name += "-" + v.overlap.String()
		}
		b.Run(name, func(b *testing.B) {
			c := newBench(b, v.size, v.overlap, v.followed)
			unit := map[bool]string{true: "redis-µs/claim", false: "redis-µs/settle"}[claims]
			b.ReportAllocs()
			b.ResetTimer()
			b.StopTimer()
			for done := 0; done < b.N; done += len(c.claims) {
				n := min(len(c.claims), b.N-done)
				for _, batch := range c.claims[:n] {
					c.next(batch)
				}
				c.phase(b, n, claims, c.claim)
				c.phase(b, n, !claims, c.settle)
			}
			slices.Sort(c.spent)
			b.ReportMetric(float64(c.spent[len(c.spent)/2])/float64(v.size), unit)
			b.ReportMetric(float64(c.spent[0])/float64(v.size), "redis-least")
		})
	}
}

// bench holds jobs whose ticks have been due for long, a batch of them for each call.
type bench struct {
	led    *ledger.Ledger
	client *redis.Client
	claims [][]claim.Claim
	ids    int
	spent  []int64 // µs of Redis for each timed batch
}

func newBench(b *testing.B, size int, overlap jobs.Overlap, followed bool) *bench {
	b.Helper()
	client := server.Client(b)
	if err := client.FlushAll(b.Context()).Err(); err != nil {
		b.Fatal(err)
	}
	c := &bench{led: must(ledger.Join(b.Context(), client, ledger.Config{Namespace: "bench", Partitions: 1, Keep: benchKeep})), client: client}
	first := time.Now().Add(-30 * 24 * time.Hour).UnixMilli()
	for i := range min(100, benchJobs/size) {
		var defs []define.Definition
		var claims []claim.Claim
		for k := range size {
			job := fmt.Sprintf("reports.customer-%05d", i*size+k)
			defs = append(defs, define.Definition{Job: job, Digest: "f10e69bcc0b94df7", Revision: "2025-11-21T12:00:00Z", Text: []byte("{}"), Cursor: first})
			claims = append(claims, claim.Claim{Job: job, Digest: "f10e69bcc0b94df7", TTL: 15 * time.Second, Next: first, Overlap: overlap})
			if followed {
				if err := follow.Follow(b.Context(), c.led, 0, job, "follower"); err != nil {
					b.Fatal(err)
				}
			}
		}
		must(define.Define(b.Context(), c.led, time.Now().UnixMilli(), defs))
		c.past(b, defs)
		c.claims = append(c.claims, claims)
	}
	return c
}

// past gives jobs the rows of runs that ended a while ago.
func (c *bench) past(b *testing.B, defs []define.Definition) {
	b.Helper()
	pipe := c.client.Pipeline()
	for i, d := range defs {
		var rows []any
		for k := range benchKeep + i%16 {
			at := time.Now().Add(time.Duration(k-100) * time.Second).UnixMilli()
			rows = append(rows, fmt.Sprintf("1|R|%d|%d|%d|%d|0|1|1|1|0191f1a2-7b3c-7d4e-8f50-0000%08d|%d|0191f1a2-7b3c-7d4e-8f50-123456789abc|"+
				"bench-1.example.com|schedule||||succeeded||%d||", at, at+1000, at, at, k, at*1000, at))
		}
		pipe.RPush(b.Context(), c.led.Keys[0].History+d.Job, rows...)
	}
	must(pipe.Exec(b.Context()))
}

// phase makes n calls, and if they are the timed ones counts them and Redis' part in each.
func (c *bench) phase(b *testing.B, n int, timed bool, call func(b *testing.B, batch []claim.Claim)) {
	b.Helper()
	for i := range n {
		if !timed {
			call(b, c.claims[i])
			continue
		}
		before := c.usec(b)
		b.StartTimer()
		call(b, c.claims[i])
		b.StopTimer()
		c.spent = append(c.spent, c.usec(b)-before)
	}
	c.client.Del(b.Context(), c.led.Keys[0].Outbox) // as if all were delivered
}

// next sets claims to the next tick.
func (c *bench) next(batch []claim.Claim) {
	for i := range batch {
		c.ids++
		batch[i].Run, batch[i].From = fmt.Sprintf("0191f1a2-7b3c-7d4e-8f50-%012x", c.ids), batch[i].Next
		batch[i].Tick, batch[i].Next = batch[i].From, batch[i].From+1000
	}
}

func (c *bench) claim(b *testing.B, batch []claim.Claim) {
	b.Helper()
	for _, a := range must(claim.Send(b.Context(), c.led, claim.Claimer{ID: "0191f1a2-7b3c-7d4e-8f50-123456789abc", Name: "bench-1.example.com"}, time.Now().UnixMilli(), batch)) {
		if a.Verdict != claim.Granted {
			b.Fatalf("answered %+v", a)
		}
	}
}

func (c *bench) settle(b *testing.B, batch []claim.Claim) {
	b.Helper()
	reports := each(batch, func(x claim.Claim) settle.Report {
		return settle.Report{Job: x.Job, Run: x.Run, Outcome: jobs.OutcomeSucceeded, Started: x.Tick, Ended: time.Now().UnixMilli(), Tries: 1}
	})
	for _, w := range must(settle.Settle(b.Context(), c.led, reports)) {
		if w != settle.Settled {
			b.Fatalf("answered %s", w)
		}
	}
}

// usec is the time that Redis has spent in scripts, by its own account.
func (c *bench) usec(b *testing.B) (sum int64) {
	b.Helper()
	for line := range strings.Lines(must(c.client.Info(b.Context(), "commandstats").Result())) {
		if _, rest, ok := strings.Cut(line, "usec="); ok && strings.HasPrefix(line, "cmdstat_eval") {
			digits, _, _ := strings.Cut(rest, ",")
			sum += must(strconv.ParseInt(digits, 10, 64))
		}
	}
	return sum
}
