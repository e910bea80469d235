package ledger

import "fmt"

func (w *world) define(o op) op {
	o.kind = "define"
	part := w.rng.IntN(tracePartitions)
	for p, stored := range w.view.gates {
		if _, open := gateAt(stored); !open && w.chance(60) {
			part = p
		}
	}
	here := func(job string) bool { return Partition(job, tracePartitions) == part }
	if w.chance(25) {
		g, _ := gateAt(w.view.gates[part])
		o.kind, o.epoch = "switch", max(0, g.epoch+pick(w, []int64{0, 0, 0, 1, -1}))
	}
	for _, name := range some(w, keepIf(jobNames, here), 3) {
		digest := w.digestFor(name)
		g, _ := gateAt(w.view.gates[part])
		switch s, known := w.view.jobs[name]; {
		case known && w.chance(20):
			digest = otherGeneration(s.Digest)
		case !known && generationOf(digest) != g.generation && w.chance(60):
			digest = otherGeneration(digest)
		}
		r := rhythms[digest]
		d := Definition{Job: name, Digest: digest, Revision: fmt.Sprintf("%04d", w.rng.IntN(40)), Generation: generationOf(digest), Text: r.definition(digest), Cursor: r.next(w.ms())}
		if s, known := w.view.jobs[name]; known {
			if w.chance(25) {
				d.Digest = s.Digest
			}
			d.WasDigest, d.WasCursor, d.Until, d.Old = s.Digest, s.Cursor, s.Last, pick(w, []string{"", "@every|1s"})
			if w.chance(50) { // the others find out when the clock stepped back
				d.Cursor = r.next(max(w.ms(), s.Last))
			}
			if s.Cursor != 0 {
				if n, last := rhythms[s.Digest].count(s.Cursor, w.ms()+1); n > 0 {
					d.Until, d.Count = last, n
				}
				if d.Upcoming = s.Cursor; s.Cursor <= w.ms() {
					d.Upcoming = rhythms[s.Digest].next(w.ms())
				}
			}
			w.spoil(&d)
		}
		if old := keepIf(w.defs, func(d Definition) bool { return d.Job == name }); len(old) > 0 && w.chance(15) {
			d = pick(w, old) // a delayed copy
		}
		w.defs = remember(w.defs, d, 40)
		o.defs = append(o.defs, d)
	}
	return o
}

// spoil makes a replacement, at times, one that must not be carried out.
func (w *world) spoil(d *Definition) {
	if a, b := rhythms[d.Digest], rhythms[d.WasDigest]; a.every == b.every && a.end == b.end && w.chance(60) {
		d.Same = true // the schedule is the same: the cursor may stay
	}
	if follows(d.Job) {
		return // it has no cursor that could be wrong
	}
	switch w.rng.IntN(12) {
	case 0:
		d.WasDigest = ""
	case 1:
		d.WasDigest = pick(w, digests)
	case 2:
		d.WasCursor += 1000
	case 3:
		d.Cursor = w.ms() - w.rng.Int64N(3)*500
	case 4:
		d.Upcoming = w.ms() - w.rng.Int64N(3)*500
	}
}

// plant makes one record foreign, or puts the own one back; rarely it adds a foreign row.
func (w *world) plant(o op) (op, bool) {
	o.kind = "plant"
	if len(w.planted) > 0 && w.chance(60) {
		o.plant = w.planted[0]
		w.planted = w.planted[1:]
		return o, true
	}
	if len(w.planted) > 2 || len(w.view.names) == 0 {
		return o, false
	}
	switch n := w.rng.IntN(10); {
	case n < 3:
		name := pick(w, w.view.names)
		o.plant = plant{what: "entry", job: name, name: name}
	case n < 6 && len(w.view.leased) > 0:
		l := pick(w, w.view.leased)
		o.plant = plant{what: "run", job: l.Job, name: l.Run}
	case n < 9 && len(w.view.pending) > 0:
		l := pick(w, w.view.pending)
		o.plant = plant{what: "pending", job: l.Job, name: l.Run}
	case n == 9:
		o.plant = plant{what: "row", job: pick(w, w.view.names), record: "2|Q|1|2|from|a|newer|version"}
	default:
		return o, false
	}
	return o, true
}
