package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/redis/go-redis/v9"
)

// benchBatches is how many batches of claims are sent before their runs are settled.
const benchBatches = 100

// BenchmarkClaim: one operation is one batch. redis-µs/claim is the time that Redis itself spent.
func BenchmarkClaim(b *testing.B) { benchmarkSizes(b, "claim") }

// BenchmarkSettle is the same for settling.
func BenchmarkSettle(b *testing.B) { benchmarkSizes(b, "settle") }

func benchmarkSizes(b *testing.B, timed string) {
	for _, v := range []struct {
		size     int
		overlap  jobs.Overlap
		followed bool
	}{{size: 1}, {size: 10}, {size: 50}, {50, jobs.OverlapQueue, false}, {50, jobs.OverlapAllow, false}, {50, jobs.OverlapSkip, true}} {
		name, size := strconv.Itoa(v.size), v.size
		if v.followed {
			name += "-followed"
		} else if v.overlap != jobs.OverlapSkip {
			name += "-" + v.overlap.String()
		}
		b.Run(name, func(b *testing.B) {
			c := newBench(b, size)
			c.use(b, v.overlap, v.followed)
			b.ReportAllocs()
			b.ResetTimer()
			b.StopTimer()
			for done := 0; done < b.N; done += benchBatches {
				n := min(benchBatches, b.N-done)
				c.phase(b, n, timed == "claim", c.claim)
				c.phase(b, n, timed == "settle", c.settle)
			}
			b.ReportMetric(float64(c.spent)/float64(b.N*size), "redis-µs/"+timed)
		})
	}
}

// bench holds jobs whose ticks have been due for long, a batch of them for each call.
type bench struct {
	led    *Ledger
	client *redis.Client
	by     Claimer
	claims [][]Claim
	ids    int
	spent  int64 // µs of Redis in the timed phases
}

func newBench(b *testing.B, size int) *bench {
	b.Helper()
	client := server.Client(b)
	if err := client.FlushAll(b.Context()).Err(); err != nil {
		b.Fatal(err)
	}
	led, err := Open(b.Context(), client, Config{Namespace: "bench", Partitions: 1})
	if err != nil {
		b.Fatal(err)
	}
	c := &bench{led: led, client: client, by: Claimer{ID: "0191f1a2-7b3c-7d4e-8f50-123456789abc", Name: "bench-1.example.com"}}
	first := c.now() - (30 * 24 * time.Hour).Milliseconds()
	for i := range benchBatches {
		var defs []Definition
		var claims []Claim
		for k := range size {
			job := fmt.Sprintf("reports.customer-%05d", i*size+k)
			defs = append(defs, Definition{Job: job, Digest: "f10e69bcc0b94df7", Revision: "2025-11-21T12:00:00Z", Text: []byte("{}"), Cursor: first})
			claims = append(claims, Claim{Job: job, Digest: "f10e69bcc0b94df7", TTL: 15 * time.Second, Next: first})
		}
		if _, err := led.Define(b.Context(), c.now(), defs); err != nil {
			b.Fatal(err)
		}
		c.claims = append(c.claims, claims)
	}
	return c
}

// use sets the jobs' overlap policy, and lets another job follow each.
func (c *bench) use(b *testing.B, overlap jobs.Overlap, followed bool) {
	b.Helper()
	for _, batch := range c.claims {
		for i := range batch {
			batch[i].Overlap = overlap
			if followed {
				if err := c.led.Follow(b.Context(), batch[i].Job, "follower"); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

func (c *bench) now() int64 { return time.Now().UnixMilli() }

func (c *bench) id() string {
	c.ids++
	return fmt.Sprintf("0191f1a2-7b3c-7d4e-8f50-%012x", c.ids)
}

// phase makes n calls, and if they are the timed ones counts them and Redis' part in them.
func (c *bench) phase(b *testing.B, n int, timed bool, call func(b *testing.B, batch []Claim)) {
	b.Helper()
	before := c.usec(b)
	if timed {
		b.StartTimer()
	}
	for i := range n {
		call(b, c.claims[i])
	}
	b.StopTimer()
	if timed {
		c.spent += c.usec(b) - before
	}
	c.client.Del(b.Context(), c.led.keys[0].outbox) // as if all had been told
}

func (c *bench) claim(b *testing.B, batch []Claim) {
	b.Helper()
	for i := range batch {
		batch[i].Run, batch[i].From = c.id(), batch[i].Next
		batch[i].Tick, batch[i].Next = batch[i].From, batch[i].From+1000
	}
	answers, err := c.led.Claim(b.Context(), c.by, c.now(), batch)
	if err != nil {
		b.Fatal(err)
	}
	for _, a := range answers {
		if a.Verdict != Granted {
			b.Fatalf("answered %+v", a)
		}
	}
}

func (c *bench) settle(b *testing.B, batch []Claim) {
	b.Helper()
	reports := make([]Report, len(batch))
	for i, claim := range batch {
		reports[i] = Report{Job: claim.Job, Run: claim.Run, Outcome: jobs.OutcomeSucceeded, Started: claim.Tick, Ended: c.now(), Tries: 1}
	}
	words, err := c.led.Settle(b.Context(), reports)
	if err != nil {
		b.Fatal(err)
	}
	for _, w := range words {
		if w != Settled {
			b.Fatalf("answered %s", w)
		}
	}
}

// usec is the time that Redis has spent in scripts, by its own account.
func (c *bench) usec(b *testing.B) (sum int64) {
	b.Helper()
	info, err := c.client.Info(b.Context(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if !strings.HasPrefix(line, "cmdstat_eval") {
			continue
		}
		_, rest, _ := strings.Cut(line, "usec=")
		digits, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			b.Fatalf("%q: %v", line, err)
		}
		sum += n
	}
	return sum
}
