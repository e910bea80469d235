package ledger_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// byJob is a server's records of a namespace, whatever their partition, without gates, chunks, the
// control record and recent.
func byJob(tb testing.TB, client *redis.Client, ns string) map[string]string {
	tb.Helper()
	ctx, all, cursors := tb.Context(), map[string]string{}, map[string]string{}
	for key := range dump(tb, client) {
		rest, ok := strings.CutPrefix(key, "{"+ns+":")
		if !ok {
			continue
		}
		_, rest, _ = strings.Cut(rest, "}:")
		switch kind := client.Type(ctx, key).Val(); {
		case rest == "gate", rest == "chunks", rest == "announced", rest == "recent":
		case kind == "list":
			all[rest] = strings.Join(client.LRange(ctx, key, 0, -1).Val(), "\n")
		case kind == "zset":
			for _, z := range client.ZRangeWithScores(ctx, key, 0, -1).Val() {
				all[rest+" "+ledger.Member(z)] = fmt.Sprint(z.Score)
			}
		default:
			for field, value := range client.HGetAll(ctx, key).Val() {
				if rest == "jobs" {
					f := strings.Split(value, "|")
					f[5], cursors[field] = "", f[1]
					value = strings.Join(f, "|")
				}
				all[rest+" "+field] = value
			}
		}
	}
	for job, at := range cursors {
		if _, ok := all["due "+job]; ok {
			all["due "+job] = at // a postponed job is due again
		}
	}
	return all
}

// quiet ends what runs, for else a move would not begin, and leaves each job a run with a key.
func idle(t *testing.T, r *rig, w *world) {
	t.Helper()
	w.look(t, r)
	for _, l := range w.leased {
		must(settle.Settle(t.Context(), r.led, []settle.Report{{Job: l.Job, Run: l.ID, Outcome: jobs.OutcomeSucceeded, Ended: r.now, Output: []byte("out|\n")}}))
	}
	for _, k := range r.led.Keys {
		r.client.Del(t.Context(), k.Cancels, k.Gate)
	}
	for _, job := range w.names {
		must(operate.Trigger(t.Context(), r.led, job, operate.TriggerRequest{Unique: "key"}))
	}
}

// fillFrom copies a namespace into another one, and adds the digests of both.
func fillFrom(t *testing.T, client *redis.Client, from *ledger.Ledger, ns string, n int, digests map[string]bool) *ledger.Ledger {
	t.Helper()
	s := &mover{t: t, ctx: t.Context(), client: client}
	s.does("reserve", s.reserve(ns, move2, n, false, ""))
	to := must(ledger.OpenExisting(s.ctx, client, ledger.Config{Namespace: ns, Keep: traceConfig.Keep, KeepFor: traceConfig.KeepFor}))
	for p := range n {
		s.does("fill", s.fill(to, p, move2))
	}
	for number := range int64(2) { // the second replaces the first
		there, err := export.Fill(s.ctx, to, move2, number+1, from.Partitions())
		s.does("copy", err)
		all := export.NewDigest()
		left, err := export.Documents(s.ctx, from, func(d export.Document) error { all.Add(d); return there.Import(s.ctx, d) })
		s.does("read", err)
		_, err = there.Flush(s.ctx)
		s.does("write", err)
		s.is("left", len(left), 0)
		digests[all.Sum()] = true
	}
	all := export.NewDigest()
	_, err := export.Documents(s.ctx, to, func(d export.Document) error { all.Add(d); return nil })
	s.does("read", err)
	digests[all.Sum()] = true
	return to
}

// TestExport copies what a random trace has left, and the copy, and wants the same of every job,
// and one digest, on both servers and in however many partitions.
func TestExport(t *testing.T) {
	useScripts(t, steered...)
	pieces := 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		digests := map[string]bool{}
		tr := &trace{rigs: []*rig{realRig(t, traceConfig), embeddedRig(t, traceConfig)}, world: newWorld(seed, true), counts: map[string]int{}}
		tr.run(t, 300)
		for _, r := range tr.rigs {
			idle(t, r, tr.world)
			from := r.led
			for i, n := range []int{5, 2} {
				to := fillFrom(t, r.client, from, fmt.Sprintf("copy%d", i), n, digests)
				want, got := byJob(t, r.client, from.Config.Namespace), byJob(t, r.client, to.Config.Namespace)
				for field := range want { // fields of a row that has left stay for a minute
					if _, ok := got[field]; !ok && (strings.HasPrefix(field, "kept ") || strings.HasPrefix(field, "anew ") || field == "defs "+former(t, from, field)) {
						delete(want, field)
					}
				}
				for _, a := range must(define.ListAnnounced(t.Context(), from)) {
					want["announced "+a.Digest+a.Generation] = fmt.Sprint(a.Generation, " ", a.Revision)
				}
				for _, a := range must(define.ListAnnounced(t.Context(), to)) {
					got["announced "+a.Digest+a.Generation] = fmt.Sprint(a.Generation, " ", a.Revision)
				}
				for _, d := range differences(want, got) {
					t.Errorf("seed %d, %s, %d partitions: %s", seed, r.name, n, d)
				}
				from, pieces = to, pieces+len(got)
			}
			if was, is := unsound(t.Context(), r.led), unsound(t.Context(), from); len(was) != len(is) {
				t.Errorf("seed %d: the copy breaks %+v, the original %+v", seed, is, was)
			}
		}
		if len(digests) != 1 {
			t.Errorf("seed %d: digests %v", seed, digests)
		}
	}
	if pieces < 40 {
		t.Errorf("%d pieces were copied", pieces)
	}
}

// TestDigestSees: whatever is another, lacks or is there twice, the digest is another one.
func TestDigestSees(t *testing.T) {
	at := int64(1)
	all := []export.Document{
		{Job: "a", Entry: "1", Due: true, Definitions: map[string]export.Text{"d": "1"}, History: []export.Text{"1", "2"}, Unique: map[string]int64{"u": 1}},
		{Job: "b", Waiting: map[string]export.Waiting{"r": {Record: "1", Start: &at}}, Held: []export.HeldDefinition{{Digest: "d", Since: 1}}},
		{Unique: map[string]int64{"v": 1}},
	}
	seen := map[string]string{}
	digest := func(what string, list ...export.Document) {
		g := export.NewDigest()
		for _, d := range list {
			g.Add(d)
		}
		if other, known := seen[g.Sum()]; known {
			t.Errorf("%s has the digest of %s", what, other)
		}
		seen[g.Sum()] = what
	}
	digest("all", all...)
	for i := range all {
		digest(fmt.Sprint("without document ", i), slices.Delete(slices.Clone(all), i, i+1)...)
	}
	for i, change := range []func(list []export.Document){
		func(l []export.Document) { l[0].Entry += "1" }, func(l []export.Document) { l[0].Job = "c" }, func(l []export.Document) { l[0].Due = false },
		func(l []export.Document) { l[0].History = []export.Text{"2", "1"} }, func(l []export.Document) { l[1].Waiting = map[string]export.Waiting{"r": {Record: "1"}} },
		func(l []export.Document) { l[2].Unique = map[string]int64{"v": 2} }, func(l []export.Document) { l[1].Held = []export.HeldDefinition{{Digest: "e", Since: 1}} },
	} {
		list := slices.Clone(all)
		change(list)
		digest(fmt.Sprint("another document ", i), list...)
	}
	digest("a job twice", append(slices.Clone(all), all[1])...)
}

// TestDocumentKeepsEveryByte writes a document as JSON and reads it again.
func TestDocumentKeepsEveryByte(t *testing.T) {
	at := int64(5)
	want := export.Document{Job: "a", Entry: "1|<&>|\u2028", History: []export.Text{"\xff\x00|", "plain \n"}, Kept: map[string]export.Text{"r": "\xc3"},
		Waiting: map[string]export.Waiting{"r": {Record: "\xfe", Start: &at}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got export.Document
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) || bytes.Count(text, []byte("base64")) != 3 {
		t.Errorf("%s is read as %+v, %v", text, got, err)
	}
}

// former is the digest that a field of byJob names, when neither an entry nor an announcement does:
// nothing uses it any more.
func former(t *testing.T, l *ledger.Ledger, field string) string {
	t.Helper()
	digest := strings.TrimPrefix(field, "defs ")
	for _, a := range must(define.ListAnnounced(t.Context(), l)) {
		if a.Digest == digest {
			return ""
		}
	}
	for _, s := range must(query.Jobs(t.Context(), l)) {
		if s.Entry.Digest == digest {
			return ""
		}
	}
	return digest
}
