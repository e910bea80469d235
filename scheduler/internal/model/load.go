package model

import (
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// One unit of time of the small world, in ms, and the instant 0.
const (
	unit  = 1000
	epoch = 10 * unit
)

// Names in the ledger: of a run one letter, of its next attempt the small one.
const (
	theJob  = "job"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	small   = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
)

func runID(run int8) string   { return letters[run : run+1] }
func nodeID(node int8) string { return digits[node : node+1] }
func digest(d Digest) string  { return digits[d : d+1] }

// nextID is the id of a run's next attempt.
func nextID(run string) string {
	i := run[0] - letters[0]
	return small[i : i+1]
}

// instant is the time of an instant in ms, and moment the reverse. The cursor at the end is 0.
func instant(at int8) int64 { return epoch + int64(at)*unit }

func moment(ms int64) int8 { return int8((ms - epoch) / unit) }

func cursor(at int8) int64 {
	if at == end {
		return 0
	}
	return instant(at)
}

func place(cursor int64) int8 {
	if cursor == 0 {
		return end
	}
	return moment(cursor)
}

// clip is a token less Redis' clock, as far as it matters.
func clip(distance int64) int8 { return int8(min(max(distance, -1), 100)) }

// load makes the ledger of a world's first record.
func (w *world) load(s *State) {
	l, m, j := &s.Records[0], w.ledger, w.job
	m.At(instant(s.Now)*1000, "a")
	*j = job{
		runs: j.runs[:0], rows: j.rows[:0], steps: j.steps[:0], server: m.server,
		Entry: ledger.Entry{
			Job: theJob, Cursor: cursor(l.Cursor), Digest: digest(l.Digest), Counts: j.Counts, Token: m.us + int64(l.Token),
		},
	}
	if l.Last != 0 {
		j.Last = instant(l.Last)
	}
	if l.Restarted {
		j.server = "b"
	}
	if l.Busy != ([2]int8{}) {
		j.Busy = ledger.Window{From: instant(l.Busy[0]), To: instant(l.Busy[1])}
	}
	if l.Tick == 0 {
		return
	}
	tick := ledger.Run{Job: theJob, Tick: instant(l.Tick), Shards: int(l.Count), Attempt: 1, Overlap: "s", Granted: instant(l.Since)}
	if l.TickID != 0 {
		tick.ID, tick.IsOpenTick = runID(l.TickID), true
	} else {
		tick.ID = runID(l.Shards[0].Run)
	}
	j.HolderRun = tick.ID
	for i := range l.Shards {
		if sh := &l.Shards[i]; sh.Phase == Pending || sh.Phase == Leased {
			w.loadRun(s, sh, tick, i)
			tick.Left++
		}
	}
	if tick.IsOpenTick {
		w.pool[2] = run{Run: tick, ends: w.pool[2].ends[:0]}
		j.runs = append(j.runs, &w.pool[2])
	}
}

// loadRun makes the run of a shard.
func (w *world) loadRun(s *State, sh *Shard, tick ledger.Run, shard int) {
	r := &w.pool[shard]
	*r = run{Run: tick}
	if r.IsOpenTick {
		r.IsOpenTick, r.TickID = false, tick.ID
	}
	r.ID, r.Shard, r.Attempt, r.Granted, r.ReservesJob = runID(sh.Run), shard, int(sh.Attempt), instant(sh.Since), sh.Phase == Pending
	if sh.Phase == Leased {
		r.Token, r.Node, r.TTL, r.Attempts = 1, nodeID(sh.Holder), lasts, int(w.Attempts)
		r.Until = instant(s.Now+sh.Until) - 1
	}
	w.job.runs = append(w.job.runs, r)
}

// lasts is a lease's ttl in ms: it has lapsed ttl units after the grant.
const lasts = ttl*unit - 1

// store puts the ledger into the world's first record. fresh is a number that no run has.
func (w *world) store(s *State, fresh int8) {
	m, j, l := w.ledger, w.job, &s.Records[0]
	after := Record{
		Cursor: place(j.Cursor), Digest: Digest(j.Digest[0] - digits[0]), Restarted: j.server != m.server, Token: clip(j.Token - m.us),
		Opened: l.Opened, Verdicts: l.Verdicts,
	}
	if j.Last != 0 {
		after.Last = moment(j.Last)
	}
	if j.Busy != (ledger.Window{}) {
		after.Busy = [2]int8{moment(j.Busy.From), moment(j.Busy.To)}
	}
	number := func(id string) int8 {
		if n := int8(id[0] - letters[0]); len(id) == 1 && int(n) < len(letters) {
			return n
		}
		fresh++
		return fresh - 1
	}
	for _, r := range j.runs {
		after.Tick, after.Count = moment(r.Tick), int8(r.Shards)
		if r.IsOpenTick {
			after.TickID, after.Since = number(r.ID), moment(r.Granted)
			continue
		}
		sh := Shard{Phase: Pending, Attempt: int8(r.Attempt), Run: number(r.ID), Since: moment(r.Granted)}
		if r.Token != 0 {
			sh.Phase, sh.Holder, sh.Until = Leased, int8(r.Node[0]-digits[0]), moment(r.Until+1)-s.Now
		}
		after.Shards[r.Shard] = sh
	}
	for i := range after.Count {
		if after.Shards[i].Phase == Absent {
			after.Shards[i].Phase = Done
		}
	}
	if after.Tick == 0 {
		after.Opened = 0
	}
	*l = after
}

// script calls a script of the ledger, and holds the change against the promises.
func (w *world) script(s *State, c Command) Answer {
	fresh := max(freshRun(s), c.Run+1)
	w.load(s)
	a := w.call(s, c)
	w.check(s, c, a)
	w.store(s, fresh)
	return a
}

// answers are the answers to claims.
var answers = func() (all [claim.VerdictUnknownFormat + 1]Answer) {
	for v := range all {
		all[v] = Answer(claim.Verdict(v).String())
	}
	return all
}()

func (w *world) call(s *State, c Command) Answer {
	m, off := w.ledger, w.ledger.ClockOff(instant(s.Now+c.Clock))
	switch c.Kind {
	case ClaimTick, ClaimPending:
		if off && w.on(ClockInClaim) {
			return WrongClock
		}
		by, claim := claim.Claimer{ID: nodeID(c.Node)}, w.claim(c)
		if !c.Asking {
			return answers[m.Claim(by, claim).Verdict]
		}
		if _, yes := m.repeated(by, w.job, claim); yes {
			return Granted
		}
		return Stale
	case Renew:
		if m.Renew(locking.Renewal{Name: theJob, Owner: runID(c.Run), TTL: millis(lasts)}) != locking.Renewed {
			return Lost
		}
		for i := range s.Flight {
			if f := &s.Flight[i]; f.Kind == Reap && f.Run == c.Run {
				f.Beating = true
			}
		}
		return Renewed
	case Settle:
		return Answer(m.Settle(settle.Report{Job: theJob, Run: runID(c.Run), Outcome: jobs.OutcomeSucceeded}))
	case Reap:
		if off && w.on(ClockInReap) {
			return WrongClock
		}
		seen := ledger.Run{Job: theJob, ID: runID(c.Run)}
		if c.Beating {
			seen.Beat-- // it has been renewed since
		}
		return Answer(m.Reap(seen))
	case Unclaim:
		return Answer(m.Unclaim(settle.Return{Job: theJob, Run: runID(c.Run)}))
	case Define:
		if off && w.on(ClockInDefine) {
			return WrongClock
		}
		return Answer(m.Define(w.definition(c)).Status)
	default:
		return NoAnswer
	}
}

// claim makes the claim of a command. The ticks between the cursor and the tick will not run.
func (w *world) claim(c Command) claim.Claim {
	claim := claim.Claim{
		Job: theJob, Digest: digest(c.Digest), Run: runID(c.Run), TTL: millis(lasts), Attempts: int(w.Attempts), Shards: int(w.Shards[c.Digest]),
		Tick: instant(c.Tick), Pending: c.Kind == ClaimPending, Shard: c.Part,
	}
	if claim.Pending {
		return claim
	}
	claim.From, claim.Next = cursor(c.Cursor), cursor(c.Next)
	if c.Cursor < c.Tick {
		n, last := w.Schedules[c.Digest].count(c.Cursor, c.Tick-1)
		w.passes[0] = ledger.SkippedRange{
			Outcome: jobs.OutcomeMissed, Reason: ledger.ReasonLate, First: claim.From, Last: instant(max(last, c.Cursor)), Count: n, Next: claim.Tick,
		}
		claim.Skipped = w.passes[:]
	}
	return claim
}

// definition makes the definition of a command, which gives up the old ticks up to the sender's
// instant.
func (w *world) definition(c Command) define.Definition {
	d := define.Definition{Job: theJob, Digest: digest(c.Digest), WasDigest: digest(c.Was), Same: c.Same}
	if c.Same {
		return d
	}
	old := w.Schedules[c.Was]
	d.Cursor, d.WasCursor, d.Upcoming = cursor(c.Next), cursor(c.Cursor), cursor(old.Next(c.Tick))
	if n, last := old.count(c.Cursor, c.Tick); n > 0 {
		d.Count, d.Until = n, instant(last)
	}
	return d
}
