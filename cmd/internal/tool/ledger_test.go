package tool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/schedtest/ledgertest"
)

// books are a namespace with one job, whose history has three runs and three missed ticks. The job
// was registered an hour ago, so that all of it is due.
type books struct {
	client *redis.Client
	env    []string
	first  time.Time
}

func keepBooks(t *testing.T) books {
	server := redistest.Start(t)
	b := books{client: server.Client(t), env: []string{"ESCAPEMENT_REDIS_URL=redis://" + server.Addr()}}
	l, err := ledgertest.Open(t.Context(), b.client, ledgertest.Config{Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	clock, _, err := l.Time(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.first = clock.Add(-time.Hour).Truncate(time.Second)
	def := jobs.Job{Name: "often", Schedule: "@every 1s", TTL: 15 * time.Second}.Definition()
	text, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	now := clock.UnixMilli()
	if _, err := ledgertest.Define(t.Context(), l, now, []ledgertest.Definition{{Job: "often", Digest: def.Digest(), Text: text, Cursor: b.first.UnixMilli()}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []ledgertest.Claim{
		{Run: "r0", From: b.at(0), Tick: b.at(0), Next: b.at(1)},
		{Run: "r4", From: b.at(1), Tick: b.at(4), Next: b.at(5), Skipped: []ledgertest.Pass{{
			Outcome: jobs.OutcomeMissed, Reason: ledgertest.ReasonLate, First: b.at(1), Last: b.at(3), Count: 3, Next: b.at(4)}}},
		{Run: "r5", From: b.at(5), Tick: b.at(5), Next: b.at(6)},
	} {
		c.Job, c.Digest, c.TTL, c.Overlap = "often", def.Digest(), 15*time.Second, jobs.OverlapSkip
		got, err := ledgertest.SendClaims(t.Context(), l, ledgertest.Claimer{ID: "n1", Name: "alpha"}, now, []ledgertest.Claim{c})
		if err != nil || got[0].Verdict != ledgertest.Granted {
			t.Fatalf("claim of %s: %+v, %v", c.Run, got, err)
		}
		if _, err := ledgertest.Settle(t.Context(), l, []ledgertest.Report{{Job: "often", Run: c.Run, Outcome: jobs.OutcomeSucceeded, Started: now, Ended: now}}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b books) at(second int) int64 {
	return b.first.Add(time.Duration(second) * time.Second).UnixMilli()
}

const bookKeys = "{escapement:0}:"

// TestLedgerVerify verifies correct records, records with unknown entries, and wrong records.
func TestLedgerVerify(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	verify := func(args ...string) (int, string, string) {
		return cmdtest.Call(b.env, "", append([]string{"ledger", "verify"}, args...)...)
	}
	code, stdout, stderr := verify()
	overdue := "escapement: overdue: often: 3,5"
	if code != command.ExitDone || stdout != "" || !strings.HasPrefix(stderr, overdue) || !strings.Contains(stderr, ": no living node holds it\n") ||
		!strings.HasSuffix(stderr, "escapement: 1 job, 4 rows, 6 ticks: the promises held\n") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	_, stdout, _ = verify("--job", "often", "-o", "json")
	testkit.Golden(t, "testdata/verify.want", regexp.MustCompile(`(?s)"overdue": \[.*?\]`).ReplaceAllString(stdout, `"overdue": []`))
	if got := cmdtest.Decode[ops.Verification](t, b.env, "ledger", "verify"); len(got.Overdue) != 1 || got.Overdue[0].Job != "often" || got.Overdue[0].First.UnixMilli() != b.at(6) {
		t.Errorf("overdue are %+v", got.Overdue)
	}

	ctx := t.Context()
	for _, target := range []string{"partition 0", "node b"} {
		b.client.RPush(ctx, "{escapement}:audit", fmt.Sprintf(`1|%d|{"author":"Redis","name":"records lost","target":%q}`, time.Now().UnixMilli(), target))
	}
	for _, tt := range []struct{ since, want string }{{"1h", "Z, and what was lost is not checked\n"}, {"2999-01-01", "the promises held\n"}} {
		if _, _, stderr = verify("--since", tt.since); !strings.HasSuffix(stderr, tt.want) {
			t.Errorf("after a loss, since %s: %q", tt.since, stderr)
		}
	}
	b.client.Set(ctx, "{escapement}:later", "x", 0)
	b.client.Set(ctx, "{escapement:lock:mine}", "x", 0)
	b.client.RPush(ctx, bookKeys+"history:often", "2|R|of|a|newer|version")
	before := b.dump(t)
	code, stdout, stderr = verify()
	if want := "escapement: left alone: {escapement:0}:history:often: row 5 of often: "; code != command.ExitDone || stdout != "" || !strings.HasPrefix(stderr, want) ||
		!strings.Contains(stderr, "escapement: left alone: {escapement}:later: ") || !strings.Contains(stderr, "the promises held") || strings.Contains(stderr, "lock:mine") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if got := cmdtest.Decode[ops.Verification](t, b.env, "ledger", "verify"); len(got.UnknownFormat) != 2 || len(got.Violations) != 0 {
		t.Errorf("got %+v", got)
	}
	if after := b.dump(t); !slices.Equal(before, after) {
		t.Errorf("it wrote something: %q, before %q", after, before)
	}
	b.client.RPop(ctx, bookKeys+"history:often")
	b.wrong(t, verify)
}

// wrong spoils the books.
func (b books) wrong(t *testing.T, verify func(args ...string) (int, string, string)) {
	ctx := t.Context()
	key := bookKeys + "history:often"
	rows := b.client.LRange(ctx, key, 0, -1).Val()
	f, g := strings.Split(rows[0], "|"), strings.Split(rows[2], "|")
	f[11], g[11] = g[11], f[11] // the tokens
	b.client.LSet(ctx, key, 0, strings.Join(f, "|"))
	b.client.LSet(ctx, key, 2, strings.Join(g, "|"))
	code, stdout, stderr := verify()
	lines := strings.Split(stdout, "\n")
	if code != command.ExitFailed || len(lines) != 4 || !strings.HasPrefix(lines[0], "P3     often  run r4 of tick ") ||
		!strings.HasPrefix(lines[1], "       run r0, tick ") || !strings.Contains(lines[1], "token "+f[11]+", on alpha (n1)") ||
		!strings.HasPrefix(lines[2], "       run r4, tick ") || !strings.Contains(lines[2], "token "+g[11]) || !strings.Contains(stderr, "the promises do not hold in the recorded history: 1 violation") {
		t.Errorf("exit %d, %s, %s", code, stdout, stderr)
	}
	code, stdout, _ = verify("-o", "json")
	var got ops.Verification
	if err := ops.Decode([]byte(stdout), &got); err != nil || code != command.ExitFailed || len(got.Violations) != 1 ||
		got.Violations[0].Promise != "P3" || got.Violations[0].Job != "often" || len(got.Violations[0].Evidence) != 2 {
		t.Errorf("exit %d, %v, %s", code, err, stdout)
	}
	for since, want := range map[string]int{time.UnixMilli(b.at(4)).UTC().Format(time.RFC3339): command.ExitFailed, time.UnixMilli(b.at(5)).UTC().Format(time.RFC3339): command.ExitDone,
		"2h": command.ExitFailed, "30m": command.ExitDone, "yesterday": command.ExitUsage} {
		if code, _, stderr := verify("--since", since); code != want {
			t.Errorf("--since %s: exit %d, want %d: %s", since, code, want, stderr)
		}
	}
	if code, stdout, stderr := verify("--job", "oft"); code != command.ExitNotFound || stdout != "" || !strings.Contains(stderr, "oft") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	b.client.LSet(ctx, key, 0, rows[0])
	b.client.LSet(ctx, key, 2, rows[2])
	digest := strings.Split(b.client.HGet(ctx, bookKeys+"jobs", "often").Val(), "|")[2]
	b.client.HSet(ctx, bookKeys+"defs", digest, `{"v":1,"na`)
	code, stdout, stderr = verify()
	if code != command.ExitFailed || stdout != "" || !strings.Contains(stderr, "1 job cannot be verified") || !strings.Contains(stderr, "left alone: {escapement:0}:defs: definition of often: ") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
}

// dump is all keys and their contents, in order.
func (b books) dump(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, key := range b.client.Keys(t.Context(), "*").Val() {
		all = append(all, fmt.Sprintf("%s %q expires: %t", key, b.client.Dump(t.Context(), key).Val(), b.client.TTL(t.Context(), key).Val() > 0))
	}
	slices.Sort(all)
	return all
}

func TestMany(t *testing.T) {
	for n, want := range map[int64]string{0: "0 rows", 1: "1 row", 12: "12 rows", 999: "999 rows", 1000: "1,000 rows", 81233: "81,233 rows", 1234567: "1,234,567 rows"} {
		if got := print.Many(n, "row"); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
