package move

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

const ns = "shop"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var by = claim.Claimer{ID: "n1", Name: "alpha"}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func mover(t *testing.T, from, to redis.UniversalClient, cfg Config) *Mover {
	t.Helper()
	cfg.Namespace = ns
	cfg.FromName, cfg.ToName = "old:6379", "new:6379"
	return must(New(from, to, cfg))
}

// people fills a namespace through the ledger's own calls.
type people struct {
	*testing.T
	client redis.UniversalClient
	led    *ledger.Ledger
	now    int64
}

func populate(t *testing.T, client redis.UniversalClient, partitions int) *people {
	t.Helper()
	p := &people{T: t, client: client, led: must(ledger.Join(t.Context(), client, ledger.Config{Namespace: ns, Partitions: partitions, Generation: "blue"}))}
	p.now = must2(p.led.Time(t.Context())).UnixMilli()
	for _, job := range []string{"ran", "many", "asked", "pending", "paused", "sharded", "replaced", "back", "late", "plain", "d-1", "d-2", "d-3"} {
		p.define(job, define.Definition{Digest: "d:" + job, Cursor: p.now - 100_000})
	}
	p.define("follower", define.Definition{Digest: "d:follower", Text: []byte(`{"name":"follower","after":"ran"}`)})
	p.err(follow.Follow(t.Context(), p.led, 0, "ran", "follower"))
	p.run("ran", "ran-1", p.now-100_000)
	for i := range int64(70) {
		p.run("many", fmt.Sprintf("many-%d", i), p.now-100_000+i)
	}
	asked := must(operate.Trigger(t.Context(), p.led, "asked", operate.TriggerRequest{Unique: "order 1", Payload: []byte("by hand | \n")}))
	p.claim(claim.Claim{Job: "asked", Digest: "d:asked", Run: asked, Pending: true, TTL: time.Minute, Attempts: 1})
	p.settle("asked", asked)
	must(operate.Trigger(t.Context(), p.led, "pending", operate.TriggerRequest{Run: "pending-1", Payload: []byte("later"), At: p.now + 3_600_000}))
	must(operate.Trigger(t.Context(), p.led, "pending", operate.TriggerRequest{Unique: "order 2"}))
	p.err(operate.Pause(t.Context(), p.led, "paused", ledger.Pause{Author: "kim", Reason: "stocktaking"}))
	must(backfill.Begin(t.Context(), p.led, ledger.Backfill{ID: "fill-1", Job: "paused", From: 1, To: p.now, Parallel: 2, Total: 3, Author: "kim"}, "d:paused"))
	must(backfill.Begin(t.Context(), p.led, ledger.Backfill{ID: "fill-2", Job: "plain", From: 1, To: p.now, Parallel: 2, Total: 0, Author: "kim"}, "d:plain"))
	for _, b := range must2(backfill.List(t.Context(), p.led, "plain")) {
		must2(backfill.Feed(t.Context(), p.led, b, "d:plain", 1, nil))
	}
	shards := claim.Claim{Job: "sharded", Digest: "d:sharded", Run: "tick-1", TTL: time.Minute, Attempts: 1, Shards: 3, Params: []string{"a", "b|", "c"}}
	p.claim(p.tick(shards, p.now-100_000))
	p.claim(claim.Claim{Job: "sharded", Digest: "d:sharded", Run: claim.ShardRun("tick-1", 0), Pending: true, Shard: true, TTL: time.Minute, Attempts: 1})
	p.settle("sharded", claim.ShardRun("tick-1", 0))
	must(operate.Cancel(t.Context(), p.led, "sharded", "tick-1", "kim", "wrong day"))
	p.define("replaced", define.Definition{Digest: "d2:replaced", WasDigest: "d:replaced", WasCursor: p.now - 100_000, Cursor: p.now + 50_000, Until: p.now - 100_000, Count: 1, Old: "x"})
	p.err(client.HDel(t.Context(), fmt.Sprintf("{%s:%d}:defs", ns, p.led.Partition("replaced")), "d:replaced").Err()) // nothing names it: it is not copied
	p.claim(p.tick(claim.Claim{Job: "back", Digest: "d:back", Run: "back-1", TTL: time.Minute, Attempts: 1}, p.now-100_000))
	must(settle.Unclaim(t.Context(), p.led, []settle.Return{{Job: "back", Run: "back-1"}}))
	p.err(claim.Postpone(t.Context(), p.led, query.Late{Job: "late", Cursor: p.now - 100_000}, p.now+90_000))
	for _, held := range []map[string]string{{"d-1": "g1", "plain": "g2"}, {"d-1": "g3"}} {
		for part, chunks := range define.Chunks(p.led, held) {
			if len(chunks) > 0 {
				p.err(define.Announce(t.Context(), p.led, "green", "r", chunks))
			}
			for _, c := range chunks {
				for job, digest := range c.Jobs {
					p.err(define.Store(t.Context(), p.led, part, []string{digest}, func(string) ([]byte, error) { return []byte(`{"name":"` + job + `"}`), nil }))
				}
			}
		}
	}
	part := p.led.Partition("plain")
	p.err(client.ZAdd(t.Context(), fmt.Sprintf("{%s:%d}:unique", ns, part), redis.Z{Score: float64(p.now + 1_000_000), Member: "of a job that is gone"}).Err())
	p.err(client.HSet(t.Context(), "{"+ns+"}:drains", "beta", "1|kim|move|1").Err())
	return p
}

func must2[T, U any](v T, _ U, err error) T { return must(v, err) }

func (p *people) err(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// clock is Redis' time now; now is when the tale began.
func (p *people) clock() int64 { return must2(p.led.Time(p.Context())).UnixMilli() }

func (p *people) define(job string, d define.Definition) {
	p.Helper()
	d.Job, d.Generation = job, "blue"
	if d.Text == nil {
		d.Text = []byte(`{"name":"` + job + `"}`)
	}
	got, err := define.Define(p.Context(), p.led, p.clock(), []define.Definition{d})
	p.err(err)
	if w := got[0].Status; w != "created" && w != "replaced" {
		p.Fatalf("define %s: %s", job, w)
	}
}

func (p *people) tick(c claim.Claim, at int64) claim.Claim {
	c.From, c.Tick, c.Next, c.Trigger = at, at, at+1, jobs.TriggerSchedule
	return c
}

func (p *people) claim(c claim.Claim) claim.Answer {
	p.Helper()
	got, err := claim.Send(p.Context(), p.led, by, p.clock(), []claim.Claim{c})
	p.err(err)
	if v := got[0].Verdict; v != claim.Granted && v != claim.Opened {
		p.Fatalf("claim %s: %+v", c.Run, got[0])
	}
	return got[0]
}

func (p *people) settle(job, run string) {
	p.Helper()
	got, err := settle.Settle(p.Context(), p.led, []settle.Report{{Job: job, Run: run, Outcome: jobs.OutcomeSucceeded, Output: []byte("output of " + run), Tries: 1, Started: p.now, Ended: p.now}})
	p.err(err)
	if got[0] != settle.Settled {
		p.Fatalf("settle %s: %s", run, got[0])
	}
}

func (p *people) run(job, run string, at int64) {
	p.Helper()
	p.claim(p.tick(claim.Claim{Job: job, Digest: "d:" + job, Run: run, TTL: time.Minute, Attempts: 1}, at))
	p.settle(job, run)
}

// dump is every key of the namespace.
func dump(t testing.TB, client redis.UniversalClient) map[string]string {
	t.Helper()
	ctx := t.Context()
	all := make(map[string]string)
	var mu sync.Mutex
	each := func(ctx context.Context, c *redis.Client) error {
		names, err := c.Keys(ctx, "{"+ns+"*").Result()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, key := range names {
			if strings.HasSuffix(key, "}:anew") || strings.HasSuffix(key, "}:incarnation") {
				continue // they are of the Redis in which jobs were made
			}
			switch kind := c.Type(ctx, key).Val(); kind {
			case "hash":
				for f, v := range c.HGetAll(ctx, key).Val() {
					if f == "incarnation" {
						continue
					}
					all[key+" "+f] = v
				}
			case "zset":
				for _, z := range c.ZRangeWithScores(ctx, key, 0, -1).Val() {
					all[key+" "+z.Member.(string)] = strconv.FormatFloat(z.Score, 'f', -1, 64)
				}
			case "list":
				all[key] = strings.Join(c.LRange(ctx, key, 0, -1).Val(), "\n")
			case "string":
				all[key] = c.Get(ctx, key).Val()
			default:
				t.Fatalf("%s is a %s", key, kind)
			}
		}
		return nil
	}
	var err error
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, each)
	} else {
		err = each(ctx, client.(*redis.Client))
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// content returns the records of jobs in a dump, whatever partition they lie in, as a move has to
// copy them.
func content(d map[string]string) map[string]string {
	out := make(map[string]string)
	for key, value := range d {
		tag, rest, _ := strings.Cut(key, "}:")
		_, _, parted := strings.Cut(tag, ":")
		if !parted && rest != "drains beta" || rest == "gate" || rest == "recent" {
			continue
		}
		if strings.HasPrefix(rest, "chunks ") {
			continue
		}
		if of, ok := strings.CutPrefix(rest, "announced "); ok { // which nodes had which definitions, without chunks
			chunk, who, _ := strings.Cut(of, "|")
			f := strings.SplitN(d[tag+"}:chunks "+chunk], "|", 3)
			for pair := range strings.SplitSeq(f[2], ",") {
				out["held by "+who+" "+pair] = f[1]
			}
			continue
		}
		if strings.HasPrefix(rest, "jobs ") {
			f := strings.Split(value, "|")
			f[5] = ""
			value = strings.Join(f, "|")
		}
		if job, ok := strings.CutPrefix(rest, "due "); ok { // a postponed job is due at its cursor again
			value = strings.Split(d[tag+"}:jobs "+job], "|")[1]
		}
		out[rest] = value
	}
	return out
}

// gatesOf counts the gates by state.
func gatesOf(t testing.TB, client redis.UniversalClient) map[string]int {
	t.Helper()
	n := map[string]int{}
	for key, value := range dump(t, client) {
		if strings.HasSuffix(key, "}:gate") {
			n[strings.Split(value, "|")[3]]++
		}
	}
	return n
}

func differ(a, b map[string]string) []string {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if x, ok := a[key]; x != b[key] || !ok {
			out = append(out, fmt.Sprintf("%s:\n  %.200q\n  %.200q", key, x, b[key]))
		}
	}
	return out
}

var errCut = fmt.Errorf("cut: %w", io.EOF)

// hook lets a test in between the calls of a client.
type hook func(cmds []redis.Cmder, next func() error) error

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h.call([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h.call(cmds, func() error { return next(ctx, cmds) })
	}
}

func (h hook) call(cmds []redis.Cmder, next func() error) error {
	err := h(cmds, next)
	if errors.Is(err, errCut) {
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
	}
	return err
}

// spy is a hook that sees one command after the other, and fails the commands for which hold is
// true.
func spy(hold func(args []any) bool, after func(args []any)) hook {
	return func(cmds []redis.Cmder, next func() error) error {
		for _, c := range cmds {
			if hold != nil && hold(c.Args()) {
				return errCut
			}
		}
		err := next()
		for _, c := range cmds {
			if after != nil && err == nil {
				after(c.Args())
			}
		}
		return err
	}
}

// script reports whether these are the arguments of the ledger's script of this name, which brings
// a move to a state, "" for any.
func script(args []any, name, state string) bool {
	known := slices.ContainsFunc(ledger.Scripts(), func(s *ledger.Script) bool {
		return s.Name() == name && len(args) > 1 && (args[1] == s.Hash() || args[1] == s.Source())
	})
	return known && (state == "" || strings.Contains(fmt.Sprint(args[len(args)-1]), `"state":"`+state+`"`))
}
