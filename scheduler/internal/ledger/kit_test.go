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

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
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
