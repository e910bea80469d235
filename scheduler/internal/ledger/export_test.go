package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
)

// byJob is what a server holds of a namespace, without gates, chunks and the control record, whatever partition it lies in.
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
		case rest == "gate", rest == "chunks", rest == "announced":
		case kind == "list":
			all[rest] = strings.Join(client.LRange(ctx, key, 0, -1).Val(), "\n")
		case kind == "zset":
			for _, z := range client.ZRangeWithScores(ctx, key, 0, -1).Val() {
				all[rest+" "+member(z)] = fmt.Sprint(z.Score)
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
			all["due "+job] = at // one that was put off is due again
		}
	}
	return all
}

// quiet ends what runs, for else a move would not begin, and leaves each job a run with a key.
func idle(t *testing.T, r *rig, w *world) {
	t.Helper()
	w.look(t, r)
	for _, l := range w.leased {
		must(r.led.Settle(t.Context(), []Report{{Job: l.Job, Run: l.Run, Outcome: jobs.OutcomeSucceeded, Ended: r.now, Output: []byte("out|\n")}}))
	}
	for _, k := range r.led.keys {
		r.client.Del(t.Context(), k.cancels, k.gate)
	}
	for _, job := range w.names {
		must(r.led.Trigger(t.Context(), job, Trigger{Unique: "key"}))
	}
}

// fillFrom copies a namespace into another one, and adds the digests of both.
func fillFrom(t *testing.T, client *redis.Client, from *Ledger, ns string, n int, digests map[string]bool) *Ledger {
	t.Helper()
	s := &mover{t: t, ctx: t.Context(), client: client}
	s.does("reserve", s.reserve(ns, move2, n, false, ""))
	to := must(OpenExisting(s.ctx, client, Config{Namespace: ns, Keep: traceConfig.Keep, KeepFor: traceConfig.KeepFor}))
	for p := range n {
		s.does("fill", s.fill(to, p, move2))
	}
	for number := range int64(2) { // the second replaces the first
		filler, err := to.Fill(s.ctx, move2, number+1, from.Partitions())
		s.does("copy", err)
		census := NewCensus()
		left, err := from.Export(s.ctx, func(p Piece) error { _ = census.Add(p); return filler.Add(s.ctx, p) })
		s.does("read", err)
		s.does("write", filler.Flush(s.ctx))
		s.is("left", len(left), 0)
		digests[census.Digest()] = true
	}
	census := NewCensus()
	_, err := to.Export(s.ctx, census.Add)
	s.does("read", err)
	digests[census.Digest()] = true
	return to
}

// TestExport copies what a random trace has left, and the copy, and wants the same of every job, and one
// digest, on both servers and in however many partitions.
func TestExport(t *testing.T) {
	useScripts(t, steered...)
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		digests, pieces := map[string]bool{}, 0
		tr := &trace{rigs: []*rig{realRig(t, traceConfig), embeddedRig(t, traceConfig)}, world: newWorld(seed, true), counts: map[string]int{}}
		tr.run(t, 300)
		for _, r := range tr.rigs {
			idle(t, r, tr.world)
			from := r.led
			for i, n := range []int{5, 2} {
				to := fillFrom(t, r.client, from, fmt.Sprintf("copy%d", i), n, digests)
				want, got := byJob(t, r.client, from.cfg.Namespace), byJob(t, r.client, to.cfg.Namespace)
				for field := range want { // what is kept of a row that has left, and for a minute
					if _, ok := got[field]; !ok && (strings.HasPrefix(field, "kept ") || strings.HasPrefix(field, "anew ")) {
						delete(want, field)
					}
				}
				for _, a := range must(from.Announced(t.Context())) {
					want["announced "+a.Digest+a.Generation] = fmt.Sprint(a.Generation, " ", a.Revision, " ", a.Since)
				}
				for _, a := range must(to.Announced(t.Context())) {
					got["announced "+a.Digest+a.Generation] = fmt.Sprint(a.Generation, " ", a.Revision, " ", a.Since)
				}
				for _, d := range differences(want, got) {
					t.Errorf("seed %d, %s, %d partitions: %s", seed, r.name, n, d)
				}
				from, pieces = to, pieces+len(got)
			}
			if was, is := r.led.unsound(t.Context()), from.unsound(t.Context()); len(was) != len(is) {
				t.Errorf("seed %d: the copy breaks %+v, the original %+v", seed, is, was)
			}
		}
		if len(digests) != 1 || pieces < 40 {
			t.Errorf("seed %d: digests %v of %d pieces", seed, digests, pieces)
		}
	}
}

// TestCensusSees: whatever is another, lacks or is there twice, the digest is another one.
func TestCensusSees(t *testing.T) {
	all := []Piece{
		{kind: pieceEntry, job: "a", name: "a", value: "1"}, {kind: pieceDef, job: "a", name: "a", value: "1"},
		{kind: pieceRows, job: "a", name: "a", rows: []string{"1", "2"}}, {kind: piecePending, job: "a", name: "r", score: 1},
		{kind: pieceUnique, job: "a", name: "u", score: 1},
	}
	seen := map[string]string{}
	digest := func(what string, list ...Piece) {
		c := NewCensus()
		for _, p := range list {
			_ = c.Add(p)
		}
		if other, known := seen[c.Digest()]; known {
			t.Errorf("%s has the digest of %s", what, other)
		}
		seen[c.Digest()] = what
	}
	digest("all", all...)
	for i, change := range []func(*Piece){
		func(p *Piece) { p.value += "1" }, func(p *Piece) { p.job = "b" }, func(p *Piece) { p.rows = []string{"2", "1"} },
		func(p *Piece) { p.score = 2 }, func(p *Piece) { p.name = "v" },
	} {
		list := slices.Clone(all)
		change(&list[i])
		digest(fmt.Sprint("another piece ", i), list...)
		digest(fmt.Sprint("without piece ", i), slices.Delete(slices.Clone(all), i, i+1)...)
	}
	digest("a row twice", append(slices.Clone(all), all[2])...)
}
