package move

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
)

// A move takes stored jobs along with their versions, also jobs that no node has registered;
// leftovers of another move there are removed.
func TestMoveTakesTheCatalog(t *testing.T) {
	_, from := redistest.StartEmbedded(t)
	_, to := redistest.StartEmbedded(t)
	cfg := ledger.Config{Namespace: ns, Partitions: 2}
	here, there := must(ledger.Join(t.Context(), from, cfg)), must(ledger.Join(t.Context(), to, cfg))
	put := func(l *ledger.Ledger, job string) int64 {
		answers := must(catalog.Apply(t.Context(), l, []catalog.Change{{Job: job, Definition: `{"v":1,"name":"` + job + `"}`}}))
		return answers[0].Version
	}
	version := put(here, "a")
	put(there, "of an older move")
	for range 2 {
		if err := catalog.Copy(t.Context(), here, there); err != nil {
			t.Fatal(err)
		}
		all := must(catalog.Names(t.Context(), there))
		if len(all) != 1 || all["a"] != version {
			t.Fatalf("there are %v, want a at %d", all, version)
		}
	}
}

// A restored job that was stored at run time is in the catalog again.
func TestRestoreOfAStoredJob(t *testing.T) {
	_, from := redistest.StartEmbedded(t)
	_, to := redistest.StartEmbedded(t)
	led := must(ledger.Join(t.Context(), from, ledger.Config{Namespace: ns, Partitions: 2}))
	d := jobs.Job{Name: "tenant", Schedule: "@hourly", Handler: "report", Payload: []byte(`{"n":1}`)}.Definition()
	d.Stored = 1_700_000_000_000
	now, _, err := led.Time(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := must(json.Marshal(d))
	must(define.Define(t.Context(), led, now.UnixMilli(), []define.Definition{{Job: d.Name, Digest: d.Digest(), Text: text, Cursor: now.Add(time.Hour).UnixMilli()}}))
	var file bytes.Buffer
	if _, left, err := Backup(t.Context(), from, ns, &file); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	must(Restore(t.Context(), to, bytes.NewReader(file.Bytes()), RestoreOptions{Namespace: ns}))
	there := must(ledger.OpenExisting(t.Context(), to, ledger.Config{Namespace: ns}))
	if all := must(catalog.Jobs(t.Context(), there, "tenant")); all[0].Version != d.Stored || all[0].Definition == "" {
		t.Errorf("the catalog has %+v", all)
	}
}
