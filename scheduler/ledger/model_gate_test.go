package ledger

import "slices"

// timed says that a script compares the caller's idea of Redis' clock with its own.
func (o op) timed() bool {
	return slices.Contains([]string{"claim", "reassert", "reap", "define", "switch", "rewind"}, o.kind)
}

// gated is the job whose partition's gate an operation looks at; "" when it looks at none, or, like a claim, at each item's.
func (o op) gated() string {
	switch {
	case len(o.defs) > 0:
		return o.defs[0].Job
	case o.kind == "rewind":
		return o.rewind.Job
	case o.kind == "follow", o.kind == "unfollow":
		return o.upstream
	case slices.Contains(guarded, o.kind):
		return o.job
	}
	return ""
}

// gate is the gate of a job's partition.
func (m *model) gate(job string) gate {
	g, _ := gateAt(m.gates[Partition(job, tracePartitions)])
	return g
}

// shut says what has closed a job's partition; nil when nothing has.
func (m *model) shut(job string) *ClosedError {
	g, open := gateAt(m.gates[Partition(job, tracePartitions)])
	if open {
		return nil
	}
	return &ClosedError{State: g.state, Move: g.move, Where: g.words}
}

// refuses says what has closed the partition that an operation would change.
func (m *model) refuses(o op) error {
	job := o.gated()
	if job == "" {
		return nil
	}
	if shut := m.shut(job); shut != nil {
		return shut
	}
	return nil
}

// raise brings a promotion to all partitions, until one is closed or a later promotion has come there.
func raise(gates *[tracePartitions]string, p Promotion) string {
	for i, stored := range gates {
		g, open := gateAt(stored)
		switch {
		case !open:
			return failed(&ClosedError{State: g.state, Move: g.move, Where: g.words})
		case g.epoch > p.Epoch:
			return "refused"
		case g.epoch == p.Epoch:
			continue
		}
		if g.epoch = p.Epoch; p.Pattern == "" {
			g.generation = p.Generation
		}
		gates[i] = g.String()
	}
	return ""
}

// former is which definitions of each job were replaced.
func (m *model) former() map[string][]string {
	all := map[string][]string{}
	for name, j := range m.jobs {
		if len(j.former) > 0 {
			all[name] = j.former
		}
	}
	return all
}

// behindGate holds what was done, and not refused, against the gate.
func (p *promises) behindGate(o op) {
	if job := o.gated(); job != "" {
		g, open := gateAt(p.gates[Partition(job, tracePartitions)])
		if o.promotes && o.epoch != g.epoch {
			p.bad("P7: %s of %s was carried out for promotion %d, and the last one is %d", o.kind, o.job, o.epoch, g.epoch)
		}
		if !open {
			p.bad("P7: %s of %s was carried out behind a gate that is %s", o.kind, job, g.state)
		}
	}
}

// defined notes which definition is stored, and whether it could come from its generation.
func (p *promises) defined(o op, d Definition, got Defined) {
	if got.Word != "created" && got.Word != "replaced" {
		return
	}
	g, _ := gateAt(p.gates[Partition(d.Job, tracePartitions)])
	switch {
	case o.kind == "switch" && o.epoch != g.epoch:
		p.bad("P7: %s was switched by promotion %d, and the last one is %d", d.Job, o.epoch, g.epoch)
	case o.kind == "define" && got.Word == "created" && d.Generation != g.generation:
		p.bad("P7: %s was created by generation %q on standby", d.Job, d.Generation)
	}
	p.stored[d.Job] = d.Digest
}
