package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// Records of a newer format, or of no format: every call leaves them as they are, byte for byte,
// reports them, and goes on with the other records.
func TestForeignRecordsAreLeftAlone(t *testing.T) {
	for name, record := range map[string]string{
		"newer":  "2|what|ever|comes",
		"longer": "1|1763726401000|d-second||0|||1763726401000||more",
		"cut":    "1|17637", "empty": "", "json": `{"v":2}`, "words": "1|a|b|c|d|e|f|g|h",
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) { unknownFormat(t, r, record) })
		})
	}
}

func unknownFormat(t *testing.T, r *rig, record string) {
	ctx, k := t.Context(), r.led.Keys[0]
	for _, job := range []string{"entry", "run", "pending", "rows", "good"} {
		r.create(t, job)
	}
	r.pass(t, time.Minute)
	for _, job := range []string{"entry", "run", "good"} {
		r.want(t, claim.Granted, tickClaim(job, job+"-1", 1))
	}
	if _, err := operate.Trigger(ctx, r.led, "pending", operate.TriggerRequest{Run: "pending-1"}); err != nil {
		t.Fatal(err)
	}
	r.client.HSet(ctx, k.Jobs, "entry", record)
	r.client.HSet(ctx, k.Runs, "run-1", record)
	r.client.HSet(ctx, k.Waiting, "pending-1", record)
	r.client.RPush(ctx, k.History+"rows", record)
	r.pass(t, time.Minute)

	r.want(t, claim.VerdictUnknownFormat, tickClaim("entry", "x", 2))
	r.want(t, claim.VerdictUnknownFormat, pendingClaim("pending", "pending-1"))
	r.want(t, claim.Skipped, tickClaim("run", "x", 2)) // its run is in flight, whatever it is
	r.settle(t, ledger.StatusUnknownFormat, "entry", "entry-1", jobs.OutcomeSucceeded)
	r.settle(t, ledger.StatusUnknownFormat, "run", "run-1", jobs.OutcomeSucceeded)
	for _, job := range []string{"entry", "run"} {
		seen := []ledger.Run{{Job: job, ID: job + "-1"}}
		if got := must(settle.Reap(ctx, r.led, r.now, r.epoch(), seen)); got[0] != ledger.StatusUnknownFormat {
			t.Errorf("reap of %s: %s", job, got[0])
		}
		if got := must(settle.Unclaim(ctx, r.led, []settle.Return{{Job: job, Run: job + "-1"}})); got[0] != ledger.StatusUnknownFormat {
			t.Errorf("unclaim of %s: %s", job, got[0])
		}
	}
	if got := must(settle.Renew(ctx, r.led, []locking.Renewal{{Name: "run", Owner: "run-1", TTL: ttl}})); got[0] != locking.Unknown {
		t.Errorf("renewal: %v", got[0])
	}
	if _, err := operate.Trigger(ctx, r.led, "entry", operate.TriggerRequest{Run: "t"}); !errors.Is(err, ledger.ErrUnknownFormat) {
		t.Errorf("trigger: %v", err)
	}
	if got := must(define.Define(ctx, r.led, r.now, []define.Definition{{Job: "entry", Digest: "d-new", WasDigest: "d-second", WasCursor: noon + 2000, Cursor: r.now + 1}})); got[0].Status != "foreign" {
		t.Errorf("define: %+v", got[0])
	}
	r.runOne(t, "rows", 1)
	r.settle(t, settle.Settled, "good", "good-1", jobs.OutcomeSucceeded)

	unknownFormatReads(t, r)
	got := map[string]string{"entry": r.client.HGet(ctx, k.Jobs, "entry").Val(), "run": r.client.HGet(ctx, k.Runs, "run-1").Val(),
		"pending": r.client.HGet(ctx, k.Waiting, "pending-1").Val(), "row": r.client.LIndex(ctx, k.History+"rows", 0).Val()}
	if want := map[string]string{"entry": record, "run": record, "pending": record, "row": record}; !maps.Equal(got, want) {
		t.Errorf("something was changed: %q", got)
	}
}

// unknownFormatReads: each reader of the ledger names the foreign records and returns the others.
func unknownFormatReads(t *testing.T, r *rig) {
	t.Helper()
	ctx := t.Context()
	for _, s := range must(query.Jobs(ctx, r.led)) {
		if (s.Err != nil) != (s.Job == "entry") || s.Err != nil && !errors.Is(s.Err, ledger.ErrUnknownFormat) {
			t.Errorf("job %s: %v", s.Job, s.Err)
		}
	}
	if open := must(query.InFlight(ctx, r.led, "entry", "run", "pending")); len(open) != 1 || open[0].ID != "entry-1" {
		t.Errorf("open: %+v", open)
	}
	rows, n, err := query.History(ctx, r.led, []string{"rows", "good"})
	if err != nil || n != 1 || len(rows["rows"]) != 1 || len(rows["good"]) != 1 {
		t.Errorf("history: %+v, %d foreign, %v", rows, n, err)
	}
	found := must(query.NewScanner(r.led).Scan(ctx, r.now, 0))
	if found.UnknownFormat != 2 || len(found.Pending) != 0 || len(found.Lapsed) != 1 {
		t.Errorf("look: %+v", found)
	}
	named := map[string]bool{}
	for _, left := range must(query.EachJob(ctx, r.led, "", func(query.JobSnapshot) {})).UnknownFormat {
		if left.Kind != "definition" {
			named[left.Job] = true
		}
	}
	if want := map[string]bool{"entry": true, "rows": true, "": true}; !maps.Equal(named, want) {
		t.Errorf("it names %v, want %v", named, want)
	}
}

func TestOpen(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx, key := t.Context(), ledger.NamespaceKeys("other").Control
		name := ledger.Config{Namespace: "other"}
		both := func(what string, want error) {
			t.Helper()
			for _, open := range []func(context.Context, redis.UniversalClient, ledger.Config) (*ledger.Ledger, error){ledger.Join, ledger.OpenExisting} {
				if l, err := open(ctx, r.client, name); !errors.Is(err, want) || err == nil && (l.Partitions() != 1 || l.Namespace() != "other") {
					t.Errorf("%s: %v, %v, want %v", what, l, err, want)
				}
			}
		}
		if _, err := ledger.OpenExisting(ctx, r.client, name); !errors.Is(err, ledger.ErrNoNamespace) || r.client.Exists(ctx, key).Val() != 0 {
			t.Errorf("a namespace that is not there: %v", err)
		}
		must(ledger.Join(ctx, r.client, name)) // with one partition
		both("what is there", nil)
		name.Partitions = 4
		if _, err := ledger.Join(ctx, r.client, name); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("other partitions: %v", err)
		}
		name.Partitions = 16
		for _, other := range []map[string]string{{"format": "3", "partitions": "16"}, {"format": "1", "partitions": "16"}, {"format": "2", "partitions": "many"}, {"format": "3", "slots": "16"}} {
			r.client.Del(ctx, key)
			r.client.HSet(ctx, key, other)
			both(fmt.Sprint(other), ledger.ErrUnknownFormat)
			if got := r.client.HGetAll(ctx, key).Val(); !maps.Equal(got, other) {
				t.Errorf("%v was changed to %v", other, got)
			}
		}
		if _, err := r.led.Restore(ctx, ""); err != nil {
			t.Errorf("restore of what is there: %v", err)
		}
		for partitions, want := range map[int]error{0: nil, 8: ledger.ErrRefused} {
			r.client.Del(ctx, ledger.NamespaceKeys(testNS).Control)
			if partitions > 0 { // another node was first
				must(ledger.Join(ctx, r.client, ledger.Config{Namespace: testNS, Partitions: partitions}))
			}
			if _, err := r.led.Restore(ctx, ""); !errors.Is(err, want) {
				t.Errorf("restore when %d partitions stand there: %v, want %v", partitions, err, want)
			}
		}
		for _, bad := range []ledger.Config{{Namespace: "a{b}"}, {Namespace: "-a"}, {Partitions: 1025}, {Partitions: -1}, {Keep: 15}} {
			if _, err := ledger.Join(ctx, r.client, bad); err == nil {
				t.Errorf("%+v was accepted", bad)
			}
		}
	})
}
