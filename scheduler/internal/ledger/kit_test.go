package ledger_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// The tests here change the package's scripts, so none of them runs in parallel.

// edit is one textual change of a piece of the scripts; old must stand there exactly once.
type edit struct{ piece, old, new string }

// steered makes the scripts' only two inputs from outside, the clock and the run_id, come from a
// key that the test sets. Every other byte is what ships. With it two servers whose clocks and
// identities differ must give the same replies and the same keys, to the letter.
var steered = []edit{
	{"token", `redis.call('TIME')`, `redis.call('HMGET', 'test:clock', 's', 'us')`},
	{"token", `redis.pcall('INFO', 'replication')`, `redis.call('HGET', 'test:clock', 'info')`},
}

// useScripts puts changed scripts in the place of the shipped ones until the test ends.
func useScripts(tb testing.TB, edits ...edit) {
	tb.Helper()
	changed := make(map[string]string)
	piece := func(name string) string { return cmp.Or(changed[name], ledger.Source(name)) }
	for _, e := range edits {
		text := piece(e.piece)
		if n := strings.Count(text, e.old); n != 1 {
			tb.Fatalf("%s.lua holds the text to replace %d times, want once: %s", e.piece, n, e.old)
		}
		changed[e.piece] = strings.Replace(text, e.old, e.new, 1)
	}
	for _, s := range ledger.Scripts() {
		shipped := *s
		s.Use(piece)
		tb.Cleanup(func() { *s = shipped })
	}
}

// script is the script of that name.
func script(name string) *ledger.Script {
	return ledger.Scripts()[slices.IndexFunc(ledger.Scripts(), func(s *ledger.Script) bool { return s.Name() == name })]
}

// rig is one server and the ledger on it, with a clock that the test sets.
type rig struct {
	name   string
	client *redis.Client
	led    *ledger.Ledger
	raw    *recorder
	now    int64 // of the steered clock, ms

	identity string // the steered run_id
}

const testNS = "trace"

// rigIncarnation is the incarnation of every partition.
const rigIncarnation = "inc"

// epoch is the id of the epoch of every partition.
func (r *rig) epoch() string { return ledger.EpochID(r.identity, rigIncarnation) }

// noon is where the steered clocks begin; its microseconds have 16 digits.
const noon = int64(1_763_726_400_000)

func newRig(tb testing.TB, name string, client *redis.Client, cfg ledger.Config) *rig {
	tb.Helper()
	r := &rig{name: name, client: client, raw: &recorder{}}
	client.AddHook(r.raw)
	if err := client.FlushAll(tb.Context()).Err(); err != nil {
		tb.Fatal(err)
	}
	cfg.Namespace, cfg.NewID = testNS, func() string { return rigIncarnation }
	r.clock(tb, noon*1000, "aaaaaaaaaaaa")
	var err error
	if r.led, err = ledger.Join(tb.Context(), client, cfg); err != nil {
		tb.Fatal(err)
	}
	return r
}

func realRig(tb testing.TB, cfg ledger.Config) *rig {
	tb.Helper()
	return newRig(tb, "redis-server", server.Client(tb), cfg)
}

func embeddedRig(tb testing.TB, cfg ledger.Config) *rig {
	tb.Helper()
	_, client := redistest.StartEmbedded(tb)
	return newRig(tb, "embedded", client, cfg)
}

// onBoth runs f on each server, with the steered clock.
func onBoth(t *testing.T, cfg ledger.Config, f func(t *testing.T, r *rig)) {
	useScripts(t, steered...)
	t.Run("redis-server", func(t *testing.T) { f(t, realRig(t, cfg)) })
	t.Run("embedded", func(t *testing.T) { f(t, embeddedRig(t, cfg)) })
}

// clock sets the steered clock and run_id.
func (r *rig) clock(tb testing.TB, us int64, runID string) {
	tb.Helper()
	r.now, r.identity = us/1000, runID
	err := r.client.HSet(tb.Context(), "test:clock", "s", us/1_000_000, "us", us%1_000_000,
		"info", "# Replication\r\nrole:master\r\nmaster_replid:"+runID+"\r\nx:1\r\n").Err()
	if err != nil {
		tb.Fatal(err)
	}
}

// pass lets time go by.
func (r *rig) pass(tb testing.TB, d time.Duration) {
	tb.Helper()
	r.clock(tb, r.now*1000+d.Microseconds(), r.identity)
}

// renew renews one lease and compares the answer.
func (r *rig) renew(tb testing.TB, job, run string, renewed bool) {
	tb.Helper()
	got, err := settle.Renew(tb.Context(), r.led, []locking.Renewal{{Name: job, Owner: run, TTL: ttl}})
	if err != nil || (got[0] == locking.Renewed) != renewed {
		tb.Fatalf("renewal of %s: %v, %v", run, got, err)
	}
}

// recorder keeps what scripts replied, as it came.
type recorder struct{ replies []string }

func (r *recorder) take() []string {
	out := r.replies
	r.replies = nil
	slices.Sort(out) // Renew calls partitions in no order
	return out
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if c, ok := cmd.(*redis.Cmd); ok && strings.HasPrefix(cmd.Name(), "eval") && !redisconn.UnknownScript(err) {
			r.replies = append(r.replies, fmt.Sprintf("%q %v", c.Val(), err))
		}
		return err
	}
}

// dump is every key of a server in one spelling: hashes and sets of fields sorted, scores as
// numbers, and a key's life when it has an end, which none should.
func dump(tb testing.TB, client *redis.Client) map[string]string {
	tb.Helper()
	values := backupOf(tb, client)
	all := make(map[string]string, len(values))
	lives, names := client.Pipeline(), slices.Sorted(maps.Keys(values))
	for _, key := range names {
		lives.PTTL(tb.Context(), key)
		var lines []string
		switch v := values[key].(type) {
		case map[string]string:
			for _, field := range slices.Sorted(maps.Keys(v)) {
				lines = append(lines, fmt.Sprintf("%q: %q", field, v[field]))
			}
		case []redis.Z:
			for _, z := range v {
				lines = append(lines, fmt.Sprintf("%q: %s", z.Member, strconv.FormatFloat(z.Score, 'f', -1, 64)))
			}
		case []string:
			for _, row := range v {
				lines = append(lines, strconv.Quote(row))
			}
		case string:
			lines = append(lines, strconv.Quote(v))
		}
		all[key] = strings.Join(lines, "\n")
	}
	for i, cmd := range must(lives.Exec(tb.Context())) {
		if cmd.(*redis.DurationCmd).Val() != -1 {
			all[names[i]] += "\nexpires"
		}
	}
	return all
}

// differences names the keys in which two dumps differ, and the first line that does.
func differences(a, b map[string]string) []string {
	var out []string
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if a[key] == b[key] {
			continue
		}
		left, right := strings.Split(a[key], "\n"), strings.Split(b[key], "\n")
		i := 0
		for i < len(left)-1 && i < len(right)-1 && left[i] == right[i] {
			i++
		}
		out = append(out, fmt.Sprintf("%s: %d and %d lines, from line %d:\n  %s\n  %s", key, len(left), len(right), i, left[i], right[i]))
	}
	return out
}

func millisOf(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// setGate stores a gate; "" takes it away.
func setGate(ctx context.Context, client *redis.Client, key, stored string) error {
	if stored == "" {
		return client.Del(ctx, key).Err()
	}
	return client.Set(ctx, key, stored, 0).Err()
}

// unsound is what the audit finds in the books, and what of them cannot be read but definitions.
func unsound(ctx context.Context, l *ledger.Ledger) (wrong []string) {
	unread := must(query.EachJob(ctx, l, "", func(b query.JobSnapshot) {
		found, _ := audit.Books(b)
		for _, f := range found {
			wrong = append(wrong, f.What)
		}
	}))
	for _, left := range unread.UnknownFormat {
		if left.Kind != "definition" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", left.Key, left.What))
		}
	}
	return wrong
}

// sound checks that the audit finds nothing.
func (r *rig) sound(t *testing.T) {
	t.Helper()
	if wrong := unsound(t.Context(), r.led); len(wrong) > 0 {
		t.Fatalf("the books are not in order: %q", wrong)
	}
}

var oneConfig = ledger.Config{Partitions: 1, Keep: 16}

const ttl = 5 * time.Second

var node = claim.Claimer{ID: "n1", Name: "alpha"}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// create makes a job whose first tick is at noon and a second.
func (r *rig) create(t *testing.T, job string) {
	t.Helper()
	got := must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: job, Digest: "d-second", Text: []byte("{}"), Cursor: noon + 1000}}))
	if got[0].Status != "created" {
		t.Fatalf("%s: %s", job, got[0].Status)
	}
}

// tickClaim is the claim of a job's tick so many seconds after noon.
func tickClaim(job, run string, second int64) claim.Claim {
	at := noon + second*1000
	return claim.Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, From: at, Tick: at, Next: at + 1000}
}

// seconds is a pass of the ticks from one second after noon to another.
func seconds(outcome jobs.Outcome, reason string, first, last int64) ledger.SkippedRange {
	return ledger.SkippedRange{Outcome: outcome, Reason: reason, First: noon + first*1000, Last: noon + last*1000, Count: last - first + 1, Next: noon + (last+1)*1000}
}

func pendingClaim(job, run string) claim.Claim {
	return claim.Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, Pending: true}
}

func (r *rig) claim(t *testing.T, c claim.Claim) claim.Answer {
	t.Helper()
	answers, err := claim.Send(t.Context(), r.led, node, r.now, []claim.Claim{c})
	if err != nil {
		t.Fatalf("claim %+v: %v", c, err)
	}
	return answers[0]
}

// want claims and compares the verdict.
func (r *rig) want(t *testing.T, v claim.Verdict, c claim.Claim) claim.Answer {
	t.Helper()
	a := r.claim(t, c)
	if a.Verdict != v {
		t.Fatalf("claim %+v: %+v, want %s", c, a, v)
	}
	return a
}

func (r *rig) settle(t *testing.T, want ledger.Status, job, run string, outcome jobs.Outcome) {
	t.Helper()
	got := must(settle.Settle(t.Context(), r.led, []settle.Report{{Job: job, Run: run, Outcome: outcome, Started: r.now, Ended: r.now, Tries: 1}}))
	if got[0] != want {
		t.Fatalf("settle of %s: %s, want %s", run, got[0], want)
	}
}

func (r *rig) rows(t *testing.T, job string) []ledger.Row {
	t.Helper()
	rows, _, err := query.History(t.Context(), r.led, []string{job})
	if err != nil {
		t.Fatal(err)
	}
	return rows[job]
}

func (r *rig) entry(t *testing.T, job string) ledger.Entry {
	t.Helper()
	return must(query.Job(t.Context(), r.led, job)).Entry
}

// tale compares a job's history, by outcome and second after noon: "succeeded 1", "failed 1 #2" for
// another attempt, "abandoned by hand" for an operator's run, "missed 2-11 x10 late"; for shards
// "0/3 failed 1", "0/3 alone failed 1" for a shard without a tick, and "all 3 failed 1" for the
// tick.
func (r *rig) tale(t *testing.T, job string, want ...string) {
	t.Helper()
	var got []string
	for _, row := range r.rows(t, job) {
		s := fmt.Sprintf("%s %d", row.Outcome, (row.Tick-noon)/1000)
		switch {
		case row.Ranged:
			s = strings.TrimSpace(fmt.Sprintf("%s-%d x%d %s %s", s, max(0, row.Until-noon)/1000, row.Count, row.Reason, row.Note))
		case row.Request != "":
			s = row.Outcome.String() + " by hand"
		}
		switch {
		case row.IsTick:
			s = fmt.Sprintf("all %d %s", row.Shards, s)
		case row.Shards > 1 && row.TickID == "":
			s = fmt.Sprintf("%d/%d alone %s", row.Shard, row.Shards, s)
		case row.Shards > 1:
			s = fmt.Sprintf("%d/%d %s", row.Shard, row.Shards, s)
		}
		if !row.Ranged && row.Attempt > 1 {
			s += fmt.Sprint(" #", row.Attempt)
		}
		if row.IsTick && row.Reason != "" {
			s += ": " + row.Reason
		}
		got = append(got, s)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history of %s is\n%q, want\n%q", job, got, want)
	}
}

// sharded is a claim of a job with so many shards.
func sharded(n int, c claim.Claim, params ...string) claim.Claim {
	c.Shards, c.Params = n, params
	return c
}

// shardClaim is the claim of a shard of an open tick.
func shardClaim(job, tick string, shard int) claim.Claim {
	return shardAgain(job, claim.ShardRun(tick, shard))
}

// shardAgain is the claim of a later attempt of one.
func shardAgain(job, run string) claim.Claim {
	c := pendingClaim(job, run)
	c.Shard = true
	return c
}

// ended claims and settles shards of an open tick, from the first on.
func (r *rig) ended(t *testing.T, job, tick string, outcomes ...jobs.Outcome) {
	t.Helper()
	for i, o := range outcomes {
		r.complete(t, o, shardClaim(job, tick, i))
	}
}

// left is the open tick's record; nil when there is none.
func (r *rig) left(t *testing.T, job, tick string) *ledger.Run {
	t.Helper()
	for _, l := range must(query.InFlight(t.Context(), r.led, job)) {
		if l.ID == tick && l.IsOpenTick {
			return &l
		}
	}
	return nil
}

// unchanged does something that must leave every key as it is.
func (r *rig) unchanged(t *testing.T, what string, do func()) {
	t.Helper()
	before := dump(t, r.client)
	do()
	if wrong := differences(before, dump(t, r.client)); len(wrong) > 0 {
		t.Errorf("%s changed %s", what, strings.Join(wrong, "\n"))
	}
}

// attempts is a claim of a tick that may be granted so often before a crash ends it.
func attempts(most int, c claim.Claim) claim.Claim {
	c.Attempts = most
	return c
}

// reap lets a lease lapse and reaps it.
func (r *rig) reap(t *testing.T, job, run string) {
	t.Helper()
	r.pass(t, ttl+time.Millisecond)
	seen := ledger.Run{Job: job, ID: run}
	for _, l := range must(query.InFlight(t.Context(), r.led, job)) {
		if l.ID == run {
			seen = l
		}
	}
	if got := must(settle.Reap(t.Context(), r.led, r.now, r.epoch(), []ledger.Run{seen})); got[0] != settle.Reaped {
		t.Fatalf("reap of %s: %s", run, got[0])
	}
}

// open is the one run in flight of a job, leased or pending; nil when there is none.
func (r *rig) open(t *testing.T, job string) *ledger.Run {
	t.Helper()
	var found []ledger.Run
	for _, l := range must(query.InFlight(t.Context(), r.led, job)) {
		if l.Job == job {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return &found[0]
	}
	t.Fatalf("in flight: %+v", found)
	return nil
}

// with is a claim under another overlap policy.
func with(o jobs.Overlap, c claim.Claim) claim.Claim {
	c.Overlap = o
	return c
}

// passing is a claim that passes ticks before its own tick; with 0 it has none.
func passing(job, run string, second int64, passes ...ledger.SkippedRange) claim.Claim {
	c := claim.Claim{Job: job, Digest: "d-second", Run: run, TTL: ttl, From: passes[0].First, Skipped: passes, Next: passes[len(passes)-1].Next}
	if second != 0 {
		c.Tick, c.Next = noon+second*1000, noon+second*1000+1000
	}
	return c
}

func overlapped(first, last int64) ledger.SkippedRange {
	return seconds(jobs.OutcomeSkipped, ledger.ReasonOverlap, first, last)
}

func late(first, last int64) ledger.SkippedRange {
	return seconds(jobs.OutcomeMissed, ledger.ReasonLate, first, last)
}

func paused(first, last int64) ledger.SkippedRange {
	return seconds(jobs.OutcomePaused, ledger.ReasonPaused, first, last)
}

func (r *rig) pause(t *testing.T, job string, p ledger.Pause) {
	t.Helper()
	if err := operate.Pause(t.Context(), r.led, job, p); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) resume(t *testing.T, job string) {
	t.Helper()
	if err := operate.Resume(t.Context(), r.led, job); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) pausedFor(t *testing.T, job string, want ledger.Window) {
	t.Helper()
	if e := r.entry(t, job); e.Pause != want {
		t.Fatalf("paused for %+v, want %+v", e.Pause, want)
	}
}

// complete claims, is granted, and settles.
func (r *rig) complete(t *testing.T, outcome jobs.Outcome, c claim.Claim) claim.Answer {
	t.Helper()
	a := r.want(t, claim.Granted, c)
	r.settle(t, settle.Settled, c.Job, c.Run, outcome)
	return a
}

// runOne claims and settles the tick so many seconds after noon.
func (r *rig) runOne(t *testing.T, job string, second int64) {
	t.Helper()
	r.complete(t, jobs.OutcomeSucceeded, tickClaim(job, fmt.Sprintf("%s-%d", job, second), second))
}

// chainOf makes jobs, each of which follows the one before it; the first has the schedule.
func (r *rig) chainOf(t *testing.T, names ...string) {
	t.Helper()
	r.create(t, names[0])
	for i, name := range names[1:] {
		r.follower(t, names[i], name)
	}
}

// follower makes a job that follows another one.
func (r *rig) follower(t *testing.T, upstream, name string) {
	t.Helper()
	must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: name, Digest: "d-after-" + name, Text: fmt.Appendf(nil, `{"name":%q,"after":%q}`, name, upstream)}}))
	if err := follow.Follow(t.Context(), r.led, 0, upstream, name); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) events(t *testing.T) []ledger.Event {
	t.Helper()
	return must(query.NewScanner(r.led).Scan(t.Context(), r.now, 0)).Events
}

// relayAll delivers all events to the followers, several times each, until there are no more.
func (r *rig) relayAll(t *testing.T) {
	t.Helper()
	for {
		events := r.events(t)
		if len(events) == 0 {
			return
		}
		for _, e := range events {
			for _, job := range slices.Concat(e.Followers, e.Followers) {
				if got := must(follow.Relay(t.Context(), r.led, e, job)); got != follow.Done {
					t.Fatalf("%s is told of %+v: %s", job, e, got)
				}
			}
			if err := follow.Relayed(t.Context(), r.led, e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func after(o jobs.Overlap, job, run string) claim.Claim {
	return claim.Claim{Job: job, Digest: "d-after-" + job, Run: run, TTL: ttl, Pending: true, Overlap: o}
}

// gate stores a gate of the only partition.
func (r *rig) gate(t *testing.T, stored string) {
	t.Helper()
	if err := setGate(t.Context(), r.client, r.led.Keys[0].Gate, stored); err != nil {
		t.Fatal(err)
	}
}

// members are so many members of a sorted set, unrelated to the ledger, with a time far ahead.
func members(n int) []redis.Z {
	all := make([]redis.Z, n)
	for i := range all {
		all[i] = redis.Z{Score: float64(2 * noon), Member: fmt.Sprint("other-", i)}
	}
	return all
}

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
