package ledger

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
)

// record fills in the record that a plant writes, and remembers the own one that it covers.
func (tr *trace) record(tb testing.TB, p *plant) bool {
	tb.Helper()
	if p.back || p.what == "row" {
		return true
	}
	l := tr.rigs[0].led
	k := l.keys[l.Partition(p.job)]
	key := map[string]string{"entry": k.jobs, "run": k.runs, "pending": k.waiting}[p.what]
	own, err := tr.rigs[0].client.HGet(tb.Context(), key, p.name).Result()
	if err != nil {
		tb.Fatal(err)
	}
	tr.world.planted = append(tr.world.planted, plant{what: p.what, job: p.job, name: p.name, record: own, back: true})
	p.record = "2" + strings.TrimPrefix(own, "1")
	return true
}

// check puts back what was planted and compares everything that is stored.
func (tr *trace) check(tb testing.TB) {
	tb.Helper()
	for _, p := range tr.world.planted {
		tr.do(tb, op{kind: "plant", plant: p})
	}
	tr.world.planted = nil
	r := tr.rigs[0]
	first := dump(tb, r.client)
	for _, other := range tr.rigs[1:] {
		for _, d := range differences(first, dump(tb, other.client)) {
			tr.bad("servers: %s and %s differ in %s", r.name, other.name, d)
		}
	}
	stored, err := r.led.Jobs(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	open, err := r.led.Open(tb.Context(), jobNames...)
	if err != nil {
		tb.Fatal(err)
	}
	rows, _, err := r.led.History(tb.Context(), jobNames)
	if err != nil {
		tb.Fatal(err)
	}
	for _, s := range stored {
		for _, what := range Chain(s.Entry, rows[s.Job], open) {
			tr.bad("P2: chain of %s: %s", s.Job, what)
		}
		a := newAudit(s.Entry, jobs.Definition{}, rows[s.Job], open)
		a.attempts()
		a.shards()
		for _, v := range a.found {
			tr.bad("%s: books of %s: %s\n%s", v.Promise, s.Job, v.What, strings.Join(v.Evidence, "\n"))
		}
	}
	for _, what := range tr.indexes(tb, stored, open) {
		tr.bad("index: %s", what)
	}
	tr.promises.books(rows, open)
	for _, list := range rows {
		for _, r := range list {
			if r.Whole && !tr.closed[r.Run] {
				tr.closed[r.Run] = true
				tr.counts["tick closed "+r.Outcome.String()]++
			}
		}
	}
	if tr.model == nil {
		return
	}
	if want := tr.model.stored(); !reflect.DeepEqual(want, stored) {
		tr.bad("model: wants the jobs%s\nstored are%s", many(want), many(stored))
	}
	if want := tr.model.open(); !reflect.DeepEqual(want, open) {
		tr.bad("model: wants the open runs%s\nopen are%s", many(want), many(open))
	}
	for what, pair := range tr.besides(tb) {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			tr.bad("model: wants of %s\n  %v\nthere is\n  %v", what, pair[0], pair[1])
		}
	}
	for _, job := range jobNames {
		if want, _ := tr.model.history(job); !reflect.DeepEqual(want, rows[job]) {
			tr.bad("model: wants the history of %s%s\nit is%s", job, many(want), many(rows[job]))
		}
	}
}

// besides is what else is stored, as the model wants it and as it is.
func (tr *trace) besides(tb testing.TB) map[string][2]any {
	tb.Helper()
	ctx, m, r := tb.Context(), tr.model, tr.rigs[0]
	former, gates := map[string][]string{}, [tracePartitions]string{}
	kept, due, told, outbox, followers := map[string]string{}, map[string]int64{}, map[string]int64{}, map[string]Event{}, map[string][]string{}
	for p, k := range r.led.keys {
		maps.Copy(kept, r.client.HGetAll(ctx, k.kept).Val())
		for _, z := range r.client.ZRangeWithScores(ctx, k.due, 0, -1).Val() {
			due[fmt.Sprint(z.Member)] = int64(z.Score)
		}
		for _, z := range r.client.ZRangeWithScores(ctx, k.unique, 0, -1).Val() {
			told[fmt.Sprint(p, " ", z.Member)] = int64(z.Score)
		}
		for _, record := range r.client.ZRange(ctx, k.outbox, 0, -1).Val() {
			e, err := eventOf(record)
			if err != nil {
				tb.Fatal(err)
			}
			e.record = ""
			outbox[record] = e
		}
		gates[p] = r.client.Get(ctx, k.gate).Val()
		for job, list := range r.client.HGetAll(ctx, k.former).Val() {
			former[job] = strings.Split(list, ",")
		}
		for upstream, names := range r.client.HGetAll(ctx, k.followers).Val() {
			followers[upstream] = strings.Split(names, ",")
		}
	}
	cancels, err := r.led.Cancels(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	pauses, err := r.led.Pauses(ctx, jobNames...)
	if err != nil {
		tb.Fatal(err)
	}
	wished := map[string]Cancel{}
	for _, c := range cancels {
		wished[c.Run] = c
	}
	return map[string][2]any{
		"former": {m.former(), former}, "gates": {m.gates, gates},
		"kept": {m.kept, kept}, "due": {keepPositive(m.due), due}, "outbox": {m.outbox, outbox},
		"unique": {m.told, told}, "cancels": {m.cancels, wished}, "pauses": {m.pauses, pauses},
		"followers": {keepSome(m.followers, func(names []string) bool { return len(names) > 0 }), followers},
	}
}

func keepPositive(all map[string]int64) map[string]int64 {
	return keepSome(all, func(n int64) bool { return n > 0 })
}

func keepSome[V any](all map[string]V, ok func(V) bool) map[string]V {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(_ string, v V) bool { return !ok(v) })
	return all
}

// indexes compares the sorted sets that a sweep looks at with the records they stand for.
func (tr *trace) indexes(tb testing.TB, stored []Stored, open []Lease) (wrong []string) {
	tb.Helper()
	r := tr.rigs[0]
	want := make([]map[string]map[string]int64, len(r.led.keys))
	for p := range want {
		want[p] = map[string]map[string]int64{"due": {}, "leases": {}, "pending": {}}
	}
	for _, s := range stored {
		if s.Cursor != 0 {
			want[r.led.Partition(s.Job)]["due"][s.Job] = s.Cursor
		}
	}
	for _, l := range open {
		p := want[r.led.Partition(l.Job)]
		if l.Whole {
			continue
		}
		if l.Pending() {
			p["pending"][l.Run] = l.Granted
		} else {
			p["leases"][l.Run] = l.Until
		}
	}
	for p, k := range r.led.keys {
		for name, key := range map[string]string{"due": k.due, "leases": k.leases, "pending": k.pending} {
			got := map[string]int64{}
			for _, z := range r.client.ZRangeWithScores(tb.Context(), key, 0, -1).Val() {
				got[fmt.Sprint(z.Member)] = int64(z.Score)
			}
			for job, until := range tr.late {
				if name == "due" && slices.Contains(until, got[job]) && want[p][name][job] != 0 {
					got[job] = want[p][name][job] // put off
				}
			}
			if !reflect.DeepEqual(got, want[p][name]) {
				wrong = append(wrong, fmt.Sprintf("%s is %v, the records say %v", key, got, want[p][name]))
			}
		}
	}
	return wrong
}
