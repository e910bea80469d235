package ledger_test

import (
	"context"
	"slices"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/model"
)

// operate makes up a call that the model does not have.
func (w *world) operate(t *testing.T) *call {
	t.Helper()
	job, now := pick(w, jobNames), w.believed()
	if len(w.names) > 0 {
		job = pick(w, w.names)
	}
	s, run := w.jobs[job], w.id("nobody")
	if known := slices.Concat(w.leased, w.pending, w.ended); len(known) > 0 && w.chance(95) {
		l := pick(w, known)
		job, run = l.Job, l.ID
	}
	other := pick(w, jobNames)
	if after := rhythmOf(s.Digest).after; after != "" && w.chance(90) {
		other = after
	}
	plain := func(name string, args any, do func(ctx context.Context, r *rig) error) *call {
		return &call{name: name, args: args, do: func(ctx context.Context, r *rig) (any, error) { return nil, do(ctx, r) }}
	}
	promotion := ledger.Promotion{Epoch: w.rng.Int64N(4), Generation: pick(w, []string{"", "neo"}), Pattern: pick(w, []string{"", "a*"})}
	switch w.rng.IntN(17) {
	case 0, 1:
		return &call{name: "cancel", args: []string{job, run}, do: func(ctx context.Context, r *rig) (any, error) {
			return operate.Cancel(ctx, r.led, job, run, "b|b", "why|\nnot")
		}}
	case 2, 3:
		return &call{name: "rerun", args: []string{job, run}, do: func(ctx context.Context, r *rig) (any, error) { return operate.Rerun(ctx, r.led, job, run) }}
	case 4:
		p := ledger.Pause{Author: "ann", Until: pick(w, []int64{0, w.ms() + w.rng.Int64N(30_000) - 5000})}
		return plain("pause", []any{job, p}, func(ctx context.Context, r *rig) error { return operate.Pause(ctx, r.led, job, p) })
	case 5:
		return plain("resume", job, func(ctx context.Context, r *rig) error { return operate.Resume(ctx, r.led, job) })
	case 6, 7:
		every := rhythmOf(s.Digest).every
		back := operate.RewindRequest{Job: s.Job, Digest: s.Digest, From: s.Cursor, To: max(s.Cursor, s.Last+1) - every*w.rng.Int64N(10) - w.rng.Int64N(2)}
		if every == 0 {
			return nil
		}
		return &call{name: "rewind", now: now, args: back, do: func(ctx context.Context, r *rig) (any, error) { return operate.Rewind(ctx, r.led, now, back) }}
	case 8:
		if w.chance(80) {
			return nil
		}
		return plain("remove", job, func(ctx context.Context, r *rig) error { return operate.Remove(ctx, r.led, job) })
	case 9:
		job := pick(w, jobNames[7:])
		if o := rhythmOf(w.jobs[job].Digest).after; o != "" {
			other = o
		}
		switch w.rng.IntN(6) {
		case 0:
			return plain("unfollow", []string{other, job}, func(ctx context.Context, r *rig) error { return follow.Unfollow(ctx, r.led, 0, other, job) })
		case 1:
			return plain("follow by a promotion", []any{promotion, other, job}, func(ctx context.Context, r *rig) error { return follow.Follow(ctx, r.led, promotion.Epoch, other, job) })
		}
		return plain("follow", []string{other, job}, func(ctx context.Context, r *rig) error { return follow.Follow(ctx, r.led, 0, other, job) })
	case 10, 11:
		return w.relay(t)
	case 12:
		late, until := query.Late{Job: s.Job, Cursor: s.Cursor - 500*int64(w.rng.IntN(5)/4)}, w.ms()+w.rng.Int64N(60_000)
		return plain("postpone", []any{late, until}, func(ctx context.Context, r *rig) error { return claim.Postpone(ctx, r.led, late, until) })
	case 13:
		return plain("raise", promotion, func(ctx context.Context, r *rig) error { return define.Raise(ctx, r.led, promotion) })
	case 14:
		return w.hold(job, pick(w, []string{"", "neo"}))
	case 15:
		part, stored := w.rng.IntN(tracePartitions), ledger.Gate{Epoch: promotion.Epoch, State: ledger.GateOpen}.String()
		if w.chance(25) {
			stored = pick(w, []string{"1|0||sealed|m|10.0.0.7:6379", "1|0||filling|m|there", "2|what|ever"})
		}
		return plain("gate", stored, func(ctx context.Context, r *rig) error {
			return r.client.Set(ctx, r.led.Keys[part].Gate, stored, 0).Err()
		})
	}
	if w.chance(30) {
		return w.recall(now)
	}
	return w.reassert(now)
}

// recall reports jobs' cursors, as nodes do after a failover.
func (w *world) recall(now int64) *call {
	here, server := w.part(), ledger.EpochID(w.runID, rigIncarnation)
	var batch []epoch.KnownCursor
	for _, job := range some(w, keepIf(w.names, here), 3) {
		s := w.jobs[job]
		r := epoch.KnownCursor{Job: job, Digest: s.Digest, Cursor: max(1, s.Cursor+w.rng.Int64N(3)*30_000), Confirmed: w.chance(50)}
		if w.chance(50) && s.Cursor < r.Cursor {
			n, last := rhythms[s.Digest].count(s.Cursor, r.Cursor)
			r.Gap = &ledger.SkippedRange{First: s.Cursor, Last: last, Count: n}
		}
		batch = append(batch, r)
	}
	if len(batch) == 0 {
		return nil
	}
	return &call{name: "recall", now: now, args: batch, do: func(ctx context.Context, r *rig) (any, error) { return epoch.Recall(ctx, r.led.At(server), now, batch) }}
}

// hold has a node announce its definitions in the partition of a job, store a definition, or tidy.
func (w *world) hold(job, generation string) *call {
	part, held := ledger.Partition(job, tracePartitions), map[string]string{job: w.digestFor(job)}
	for _, other := range jobNames {
		if ledger.Partition(other, tracePartitions) == part && w.chance(50) {
			held[other] = w.digestFor(other)
		}
	}
	now := w.ms() + pick(w, []int64{0, define.AnnouncedFor.Milliseconds() - 20_000})
	done := func(name string, args any, do func(ctx context.Context, l *ledger.Ledger) error) *call {
		return &call{name: name, args: args, do: func(ctx context.Context, r *rig) (any, error) { return ledger.Status("done"), do(ctx, r.led) }}
	}
	switch w.rng.IntN(3) {
	case 0:
		return done("store", held[job], func(ctx context.Context, l *ledger.Ledger) error {
			return define.Store(ctx, l, part, []string{held[job]}, func(digest string) ([]byte, error) { return rhythmOf(digest).definition(digest), nil })
		})
	case 1:
		return done("tidy", now, func(ctx context.Context, l *ledger.Ledger) error { return define.Tidy(ctx, l, part, now) })
	}
	return done("announce", held, func(ctx context.Context, l *ledger.Ledger) error {
		return define.Announce(ctx, l, generation, "1", define.Chunks(l, held)[part])
	})
}

// relay delivers an event of an outbox to a follower.
func (w *world) relay(t *testing.T) *call {
	t.Helper()
	found := must(query.NewScanner(w.rig.led).Scan(t.Context(), w.ms(), 0)).Events
	if len(found) == 0 {
		return nil
	}
	e := pick(w, found)
	if e.Unheld = w.chance(10); len(e.Followers) == 0 || w.chance(20) {
		return &call{name: "relayed", args: e, do: func(ctx context.Context, r *rig) (any, error) { return nil, follow.Relayed(ctx, r.led, e) }}
	}
	job := pick(w, e.Followers)
	return &call{name: "relay", args: []any{e, job}, do: func(ctx context.Context, r *rig) (any, error) { return follow.Relay(ctx, r.led, e, job) }}
}

// reassert reports runs that are, or were, leased, as nodes do after a failover.
func (w *world) reassert(now int64) *call {
	here, server := w.part(), ledger.EpochID(w.runID, rigIncarnation)
	var batch []epoch.Assertion
	for _, l := range some(w, keepIf(w.ended, func(l ledger.Run) bool { return here(l.Job) }), 4) {
		digest := w.jobs[l.Job].Digest
		a := epoch.Assertion{Digest: digest, Run: l, Reopen: l.TickID != "", Params: rhythmOf(digest).params, Next: rhythmOf(digest).next(l.Tick)}
		if cursor := w.jobs[l.Job].Cursor; w.chance(50) && cursor < l.Tick {
			n, last := rhythmOf(digest).count(cursor, l.Tick)
			a.Gap = &ledger.SkippedRange{Outcome: jobs.OutcomeMissed, First: cursor, Last: last, Count: n}
		}
		batch = append(batch, a)
	}
	if w.chance(5) {
		server = pick(w, []string{ledger.EpochID("0123", rigIncarnation), ledger.EpochID(w.runID, "other"), ledger.EpochID(w.runID, "")})
	}
	return batched("reassert", now, batch, func(ctx context.Context, r *rig) ([]epoch.Asserted, error) {
		return epoch.Reassert(ctx, r.led.At(server), now, batch)
	}, func(*model.Ledger, epoch.Assertion) (none epoch.Asserted) { return none })
}
