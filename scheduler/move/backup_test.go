package move

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
)

// documents returns a namespace's documents by job, as a restore writes them.
func documents(t *testing.T, client redis.UniversalClient, namespace string) map[string]export.Document {
	t.Helper()
	all := make(map[string]export.Document)
	led := must(ledger.OpenExisting(t.Context(), client, ledger.Config{Namespace: namespace}))
	must(export.Documents(t.Context(), led, func(d export.Document) error {
		d.Held, d.Part = nil, 0
		for digest := range d.Definitions {
			if !strings.Contains(string(d.Entry), "|"+digest+"|") {
				delete(d.Definitions, digest)
			}
		}
		if len(d.Definitions) == 0 {
			d.Definitions = nil
		}
		if !reflect.DeepEqual(d, export.Document{Job: d.Job}) {
			all[d.Job] = d
		}
		return nil
	}))
	return all
}

func backup(t *testing.T, client redis.UniversalClient) []byte {
	t.Helper()
	var file bytes.Buffer
	if _, left, err := Backup(t.Context(), client, ns, &file); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	return file.Bytes()
}

// TestRestore: a restore into other partitions and under another name gives the same jobs.
func TestRestore(t *testing.T) {
	for _, partitions := range []int{1, 5} {
		_, a := redistest.StartEmbedded(t)
		_, b := redistest.StartEmbedded(t)
		p := populate(t, a, 2)
		going := claim.Claim{Job: "plain", Digest: "d:plain", Run: "going", TTL: 60e9, Attempts: 1}
		p.claim(p.tick(going, p.now-100_000))
		file := backup(t, a)
		got, err := Restore(t.Context(), b, bytes.NewReader(file), RestoreOptions{Namespace: "other", Partitions: partitions})
		if err != nil || !got.Created || len(got.Exists) > 0 || got.Jobs != 14 || got.Running != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		was, is := documents(t, a, ns), documents(t, b, "other")
		for job, d := range was {
			if !reflect.DeepEqual(d, is[job]) {
				t.Errorf("%q was\n  %s\nand is\n  %s", job, must(json.Marshal(d)), must(json.Marshal(is[job])))
			}
		}
		if len(is) != len(was) {
			t.Errorf("%d documents, want %d", len(is), len(was))
		}
		led := must(ledger.OpenExisting(t.Context(), b, ledger.Config{Namespace: "other"}))
		if control := must(led.Control(t.Context())); control.Generation != "blue" || control.Partitions != partitions {
			t.Errorf("%+v", control)
		}
	}
}

// TestRestoreSomeJobs: existing jobs stay as they are, missing jobs are restored; a job outside the
// pattern is not.
func TestRestoreSomeJobs(t *testing.T) {
	_, a := redistest.StartEmbedded(t)
	p := populate(t, a, 2)
	file := backup(t, a)
	before := documents(t, a, ns)
	p.err(operate.Remove(t.Context(), p.led, "plain"))
	p.err(operate.Remove(t.Context(), p.led, "many"))
	for _, dry := range []bool{true, false} {
		got, err := Restore(t.Context(), a, bytes.NewReader(file), RestoreOptions{Namespace: ns, Pattern: "p*", DryRun: dry})
		if slices.Sort(got.Exists); err != nil || got.Created || got.Jobs != 3 || !slices.Equal(got.Exists, []string{"paused", "pending"}) {
			t.Fatalf("%+v, %v", got, err)
		}
		if _, there := documents(t, a, ns)["plain"]; there == dry {
			t.Errorf("dry %t: plain is there: %t", dry, there)
		}
	}
	after := documents(t, a, ns)
	delete(before, "many")
	if !reflect.DeepEqual(before, after) {
		t.Errorf("was\n%v\nis\n%v", before, after)
	}
	p.claim(p.tick(claim.Claim{Job: "plain", Digest: "d:plain", Run: "again", TTL: 60e9, Attempts: 1}, p.now-100_000))
}

// TestRestoreRefuses: nothing is written of a file with an error in it.
func TestRestoreRefuses(t *testing.T) {
	_, a := redistest.StartEmbedded(t)
	_, b := redistest.StartEmbedded(t)
	populate(t, a, 2)
	file := string(backup(t, a))
	lines := strings.SplitAfter(file, "\n")
	at := slices.IndexFunc(lines, func(s string) bool { return strings.Contains(s, `"job":"plain"`) })
	edit := func(i int, from, to string) string {
		l := slices.Clone(lines)
		if l[i] = strings.Replace(l[i], from, to, 1); l[i] == lines[i] {
			t.Fatalf("line %d has no %s", i, from)
		}
		return strings.Join(l, "")
	}
	for what, c := range map[string]struct{ file, words string }{
		"empty":             {"", "ends in line 1"},
		"another file":      {"hello: world\n", "line 1"},
		"JSON":              {"{}\n", "first line"},
		"no line":           {strings.Repeat("\x00", 200_000), "line 1 has more than 65536 bytes"},
		"a later format":    {edit(0, `"format":1`, `"format":2`), "format is 2"},
		"half":              {file[:len(file)/2], "before its end"},
		"no end":            {strings.Join(lines[:len(lines)-2], ""), "before its end"},
		"a line less":       {strings.Join(slices.Delete(slices.Clone(lines), at, at+1), ""), "are noted"},
		"a line twice":      {strings.Join(slices.Insert(slices.Clone(lines), at, lines[at]), ""), "twice"},
		"another cursor":    {edit(at, `"entry":"1|1`, `"entry":"1|2`), "changed"},
		"a newer entry":     {edit(at, `"entry":"1|`, `"entry":"2|`), fmt.Sprintf("line %d", at+1)},
		"a field":           {edit(at, `"entry"`, `"entri"`), "entri"},
		"another name":      {edit(at, `"job":"plain"`, `"job":"other"`), "names another job"},
		"more behind it":    {file + "{}\n", "behind its last line"},
		"another head":      {edit(0, `"generation":"blue"`, `"generation":"blux"`), "changed"},
		"a job without any": {edit(at, `"job":"plain",`, ``), "names no job"},
	} {
		_, err := Restore(t.Context(), b, strings.NewReader(c.file), RestoreOptions{Namespace: ns})
		if !(errors.Is(err, ErrBadBackup) || errors.Is(err, ledger.ErrUnknownFormat)) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v; want it refused with %q", what, err, c.words)
		}
		if n := b.DBSize(t.Context()).Val(); n != 0 {
			t.Fatalf("%s: %d keys were written", what, n)
		}
	}
	if _, err := Restore(t.Context(), b, strings.NewReader(file), RestoreOptions{Namespace: ns, Pattern: "nobody*"}); !errors.Is(err, ErrBadBackup) {
		t.Errorf("a pattern that matches nothing: %v", err)
	}
}

// TestLineReaderIsBounded: a line without end is refused, after reading no more than its bound.
func TestLineReaderIsBounded(t *testing.T) {
	const most = 10_000
	file := strings.NewReader(`{"escapement_backup":"x"}` + "\n" + strings.Repeat("x", 1<<20))
	c := lineReader{r: bufio.NewReader(file), sum: sha256.New(), most: most}
	var head backupHead
	if err := c.next(&head); err != nil {
		t.Fatal(err)
	}
	err := c.next(&head)
	if want := "line 2 has more than 10000 bytes"; !errors.Is(err, ErrBadBackup) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if read := int(file.Size()) - file.Len(); read > 2*most {
		t.Errorf("read %d bytes", read)
	}
}

// TestBackupLeavesOut: a job that could not be restored is named, and is not in the backup.
func TestBackupLeavesOut(t *testing.T) {
	_, a := redistest.StartEmbedded(t)
	_, b := redistest.StartEmbedded(t)
	p := populate(t, a, 2)
	p.err(a.HDel(t.Context(), fmt.Sprintf("{%s:%d}:defs", ns, p.led.Partition("late")), "d:late").Err())
	var file bytes.Buffer
	totals, left, err := Backup(t.Context(), a, ns, &file)
	if err != nil || totals.Jobs != 13 || len(left) != 1 || !strings.Contains(left[0], "late") {
		t.Errorf("%+v, %q, %v", totals, left, err)
	}
	if got, err := Restore(t.Context(), b, bytes.NewReader(file.Bytes()), RestoreOptions{Namespace: ns}); err != nil || got.Jobs != 13 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRestoreBesideNodes: a follower is restored before its upstream's events, and current
// followers stay.
func TestRestoreBesideNodes(t *testing.T) {
	eb, b := redistest.StartEmbedded(t)
	_, a := redistest.StartEmbedded(t)
	populate(t, a, 2)
	file := backup(t, a)
	if err := b.HSet(t.Context(), "{shop:0}:followers", "ran", "newcomer").Err(); err != nil {
		t.Fatal(err)
	}
	client := eb.Client()
	defer client.Close()
	var order []string
	client.AddHook(spy(func([]any) bool { return false }, func(args []any) {
		for _, arg := range args {
			if arg == "ran" || arg == "follower" {
				order = append(order, arg.(string))
				return
			}
		}
	}))
	must(Restore(t.Context(), client, bytes.NewReader(file), RestoreOptions{Namespace: ns, Partitions: 1}))
	if !slices.Equal(order, []string{"follower", "ran"}) {
		t.Errorf("written in the order %q", order)
	}
	if got := b.HGet(t.Context(), "{shop:0}:followers", "ran").Val(); got != "newcomer" {
		t.Errorf("followers are %q", got)
	}
}

// TestRestoreBehindTheClock: tokens could decrease if the other server's clock is behind the
// backup's.
func TestRestoreBehindTheClock(t *testing.T) {
	_, a := redistest.StartEmbedded(t)
	eb, b := redistest.StartEmbedded(t)
	populate(t, a, 2)
	file := backup(t, a)
	eb.StepClock(-time.Minute)
	if _, err := Restore(t.Context(), b, bytes.NewReader(file), RestoreOptions{Namespace: ns}); !errors.Is(err, ledger.ErrRefused) || b.DBSize(t.Context()).Val() != 0 {
		t.Error(err)
	}
}

// TestBackupWhileAMoveFills: half a namespace is no backup.
func TestBackupWhileAMoveFills(t *testing.T) {
	_, a := redistest.StartEmbedded(t)
	_, b := redistest.StartEmbedded(t)
	populate(t, a, 2)
	must(mover(t, a, b, Config{}).Seal(t.Context(), SealOptions{Drain: -1}))
	if _, _, err := Backup(t.Context(), b, ns, io.Discard); !errors.Is(err, ledger.ErrRefused) {
		t.Error(err)
	}
	backup(t, a)
}

// TestRestoreWhereItIsClosed: a namespace that a move has closed takes no jobs.
func TestRestoreWhereItIsClosed(t *testing.T) {
	_, a := redistest.StartEmbedded(t)
	_, b := redistest.StartEmbedded(t)
	p := populate(t, a, 2)
	file := backup(t, a)
	p.err(operate.Remove(t.Context(), p.led, "plain"))
	must(mover(t, a, b, Config{}).Seal(t.Context(), SealOptions{Drain: -1}))
	if _, err := Restore(t.Context(), a, bytes.NewReader(file), RestoreOptions{Namespace: ns, Pattern: "plain"}); !errors.Is(err, ledger.ErrClosed) {
		t.Error(err)
	}
}
