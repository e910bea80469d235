//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/escapement/escapement/jobs"
)

// unaware is a resumed node that did not learn what became of its run, or did not tell.
const unaware kind = "RESUME"

// frozen is what the scenario did.
type frozen struct {
	node   *node
	long   line // the start of the run that outlived its lease
	at, to time.Time
}

// freezing are the times of the scenario.
func freezing(r *rehearsal) (ttl, freeze, long time.Duration) {
	if r.short {
		return 3 * time.Second, 8 * time.Second, 12 * time.Second
	}
	return 5 * time.Second, 20 * time.Second, 25 * time.Second
}

func freezeSettings(r *rehearsal) settings {
	ttl, _, lasting := freezing(r)
	first := time.Now().Add(4 * time.Second)
	return settings{jobs: append(everySecond(r.jobs), slow("slow-1"), slow("slow-2"), long(first, lasting)), ttl: ttl}
}

// freeze stops the node that carries the long run, amid its other starts, for longer than the
// leases last, and lets it go on while the long command still runs.
func freeze(ctx context.Context, r *rehearsal, s *stage) error {
	if err := s.startAll(ctx, r.nodes, nil); err != nil {
		return err
	}
	f := frozen{}
	var err error
	if f.long, err = s.await(ctx, "long"); err != nil {
		return err
	}
	if f.node, err = s.node(f.long.node); err != nil {
		return err
	}
	if err := s.amid(ctx); err != nil {
		return err
	}
	_, d, _ := freezing(r)
	s.struck[f.node.name] = true
	f.at = time.Now()
	if err := f.node.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	s.say("SIGSTOP to %s, which carries the long run, at %s", f.node.name, stamp(f.at))
	if err := wait(ctx, d); err != nil {
		return err
	}
	f.to = time.Now()
	if err := f.node.signal(syscall.SIGCONT); err != nil {
		return err
	}
	s.say("SIGCONT at %s", stamp(f.to))
	end := s.from.Add(r.seconds - time.Second)
	if least := f.to.Add(4 * time.Second); end.Before(least) {
		end = least
	}
	if err := waitUntil(ctx, end); err != nil {
		return err
	}
	if err := s.finish(ctx, demand{within: startsWithin}); err != nil {
		return err
	}
	s.resumed(f)
	s.stoodIn(f)
	return nil
}

// await is the first start of a job.
func (s *stage) await(ctx context.Context, job string) (line, error) {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second) // its ticks are 30 s apart
	defer cancel()
	for {
		lines, _, err := readSink(s.sink())
		if err != nil {
			return line{}, err
		}
		if i := slices.IndexFunc(lines, func(l line) bool { return l.job == job }); i >= 0 {
			return lines[i], nil
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return line{}, fmt.Errorf("job %s never started: %w", job, err)
		}
	}
}

// resumed checks what the frozen node learnt of its long run, and what the books say of it.
func (s *stage) resumed(f frozen) {
	run := f.long.run
	told := f.node.said(func(r record) bool {
		return r.Run == run && r.Message == "lease lost while the run was going; its context was cancelled"
	})
	switch after := told.Time.Sub(f.to); {
	case told.Run == "":
		s.accuse(unaware, "%s never logged that the lease of its long run, %s, was lost", f.node.name, run)
	case after < -time.Millisecond || after > time.Second: // the log has whole milliseconds
		s.accuse(unaware, "%s logged the lost lease of %s %s after SIGCONT, not within 1 s", f.node.name, run, after)
	default:
		s.note("%s logged the lost lease, and its context was cancelled, %s after SIGCONT", f.node.name, short(after))
	}
	if f.node.said(func(r record) bool { return r.Run == run && r.Answer == "lost" }).Run == "" {
		s.accuse(unaware, "%s never logged that its settle of %s was answered lost", f.node.name, run)
	}
	row, ok := s.books.find(run)
	if !ok || row.Outcome != jobs.OutcomeAbandoned || row.Late == "" {
		s.accuse(unaware, "the record of %s should be abandoned, with the late report beside it: %+v", run, row)
	} else {
		s.note("its settle was answered lost; the record: abandoned %s after the freeze, and later reported: %s",
			short(time.UnixMilli(row.At).Sub(f.at)), row.Late)
	}
	if slices.ContainsFunc(s.lines, func(l line) bool { return l.run == run && l.phase == phaseEnd }) {
		s.accuse(unaware, "the long command of %s reached its end although its context was cancelled before that", run)
	}
}

// stoodIn checks what happened to the ticks of the frozen time.
func (s *stage) stoodIn(f frozen) {
	span := window{f.at, f.to}
	var abandoned, others, blindly int
	back := f.to.Add(time.Hour)
	for _, l := range starts(s.lines) {
		if l.node == f.node.name && s.audit.abandoned[l.run] && l.at.After(f.to) {
			blindly++
		}
		switch {
		case l.node != f.node.name && span.holds(l.tick):
			others++
		case l.node == f.node.name && span.holds(l.tick) && l.at.Before(f.to):
			s.accuse(unaware, "%s ran a tick while it was frozen: %s", f.node.name, l)
		case l.node == f.node.name && l.tick.After(f.to) && l.at.Before(back):
			back = l.at
		}
	}
	if back.After(f.to.Add(time.Minute)) {
		s.accuse(unaware, "%s ran nothing after it was resumed", f.node.name)
	}
	for _, rows := range s.books.Rows {
		for _, row := range rows {
			if s.audit.abandoned[row.Run] {
				abandoned++
			}
		}
	}
	for _, l := range s.books.Open {
		if l.NodeName == f.node.name && time.UnixMilli(l.Tick).Before(f.to) {
			s.accuse(unaware, "the run %s of %s, from before it was resumed, is still in flight", l.Run, f.node.name)
		}
	}
	free := f.at.Add(s.ttl + startsWithin)
	for id, reason := range s.audit.absent {
		if t := time.Unix(id.second, 0); t.After(free) && reason != unclaimed {
			s.accuse(lost, "%s %s was %s, though the frozen node's leases were over at %s", id.job, stamp(t), reason, stamp(free))
		}
	}
	s.note("%s frozen for %s with %d runs, all recorded as abandoned; the others ran %d ticks meanwhile; it ran its next one %s after SIGCONT",
		f.node.name, short(f.to.Sub(f.at)), abandoned, others, short(back.Sub(f.to)))
	s.note("its commands are processes of their own, which SIGSTOP does not reach: they went on, the long one until the resumed node ended it; "+
		"lines that its abandoned runs wrote after SIGCONT: %d; lines after a newer token, for a guard to refuse: %d",
		blindly, s.findings.stale)
}
