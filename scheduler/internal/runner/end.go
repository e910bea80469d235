package runner

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// end reports how a run ended. The lease is kept alive until the report is answered.
func (r *Runner) end(l *activeRun) {
	report := r.report(l)
	if l.calling.Swap(false) && (l.lease.Lost() || report.Outcome == jobs.OutcomeLost) {
		r.logLost(l) // before the run is settled, in any case
	}
	if l.held != nil {
		r.wg.Go(l.held.Release)
		l.held = nil
	}
	if l.cancel != nil {
		l.cancel()
	}
	r.calls.Done()
	r.Redis.Settle(l.g, report, endedRun{r, l})
}

// endedRun is a run whose report has been sent.
type endedRun struct {
	r *Runner
	l *activeRun
}

// Settled logs the answer to the report and removes the run.
func (e endedRun) Settled(report settle.Report, status ledger.Status, err error) {
	r, g := e.r, e.l.g
	recorded := err == nil && status == settle.Settled
	duration := time.Duration(report.Ended-report.Started) * time.Millisecond
	succeeded := recorded && report.Outcome == jobs.OutcomeSucceeded
	if level, shown := r.usual(duration > long); shown || !succeeded {
		r.logEnd(g, report, status, err, level)
	}
	r.Listener.Settled(g.Lease, report, recorded)
	r.leave(e.l)
	r.wg.Done()
}

// clockStep is by how much the estimate of Redis' clock may change in a run without a step of that clock.
const clockStep = time.Second

// startOf returns when a run started, by the clock that Redis has at its end. Where that clock was set meanwhile, the start is as
// long before the end as the run has lasted.
func startOf(started, ended time.Time, lasted time.Duration) time.Time {
	//guard:run-lasts P2 a run whose Redis was set back has no negative duration
	if off := ended.Sub(started) - lasted; off.Abs() > clockStep {
		return ended.Add(-lasted)
	}
	return started
}

// report is this node's report of a run's end.
func (r *Runner) report(l *activeRun) settle.Report {
	_ = l.lease.Context().Err() // ends the lease where its timer has not run yet, as after a standstill
	if l.held != nil {
		_ = l.held.Context().Err()
	}
	how, reason := outcome(l.ctx, l.err)
	l.overran.write(l, how)
	ended := r.Now()
	started := startOf(l.started, ended, time.Since(l.began)+locking.Slept()-l.slept)
	report := settle.Report{
		Job: l.g.Job.Name, Run: l.g.Lease.ID, Token: l.g.Lease.Token, Outcome: how, Reason: reason,
		Started: started.UnixMilli(), Ended: ended.UnixMilli(), Tries: l.tries,
	}
	if l.tries > 0 {
		report.Error, report.Output = errorText(l.err, l.earlier), l.run.Written()
	}
	report.Saved = l.store.by()
	if how == jobs.OutcomeSucceeded && l.tries > 0 {
		report.Result = l.run.Result()
	}
	report.Rerun = l.g.Job.OnCrash == jobs.OnCrashRerun && cutShort(how, reason)
	if how == jobs.OutcomeFailed && elsewhere(l) {
		report.Rerun, report.RetryIn = true, retryWait(report.Run, l.g.Job.Retry, l.g.Lease.Attempt)
	}
	return report
}

// elsewhere reports whether another node is to make a failed run's next try.
func elsewhere(l *activeRun) bool {
	retry := l.g.Job.Retry
	return retry.On == jobs.RetryOtherNode && l.g.Lease.Attempt <= retry.Max && !jobs.IsPermanent(l.err)
}

// cutShort reports whether on_crash rerun answers such an end with another attempt.
func cutShort(how jobs.Outcome, reason string) bool {
	return how == jobs.OutcomeLost || how == jobs.OutcomeCancelled && reason == ledger.ReasonDraining
}

// outcome returns the outcome of a function's call, and its reason. The function's result counts
// first: a function that finished its work has succeeded, even if its context ended meanwhile.
func outcome(ctx context.Context, err error) (jobs.Outcome, string) {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return jobs.OutcomeSucceeded, ""
	case errors.Is(cause, locking.ErrLeaseLost):
		return jobs.OutcomeLost, ""
	case errors.Is(cause, jobs.ErrTimeout):
		return jobs.OutcomeTimedOut, ""
	case errors.Is(cause, ErrDraining):
		return jobs.OutcomeCancelled, ledger.ReasonDraining
	case errors.Is(cause, jobs.ErrReplaced):
		return jobs.OutcomeCancelled, ledger.ReasonReplaced
	case errors.Is(cause, jobs.ErrStalled):
		return jobs.OutcomeCancelled, ledger.ReasonStalled
	case errors.Is(cause, jobs.ErrCancelled):
		return jobs.OutcomeCancelled, cause.Error()
	default:
		return jobs.OutcomeFailed, ""
	}
}

const (
	// errorRoom bounds the error text that the ledger keeps of a run, in bytes.
	errorRoom = 2 << 10
	// shortMax bounds the part of it that one earlier try may take.
	shortMax = 200
)

// errorText is the last try's error, then the errors of the newest earlier tries, as many as fit.
func errorText(last error, before []string) string {
	const lead, between = "; before: ", "; "
	if last == nil {
		return ""
	}
	text := last.Error()
	room, first := errorRoom-len(text)-len(lead), len(before)
	for first > 0 && len(before[first-1]) <= room {
		first--
		room -= len(before[first]) + len(between)
	}
	if first == len(before) {
		return text
	}
	return text + lead + strings.Join(before[first:], between)
}

// short is the first line of an error.
func short(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return clip(line, shortMax)
}

// clip cuts a text to most bytes, at the border of a rune.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "..."
}

// logEnd logs the answer to a report.
func (r *Runner) logEnd(g work.Grant, report settle.Report, status ledger.Status, err error, usual slog.Level) {
	log := r.Log.With("job", g.Job.Name, "tick", time.UnixMilli(g.Lease.Tick).UTC(), "run", report.Run, "outcome", report.Outcome.String())
	duration := time.Duration(report.Ended-report.Started) * time.Millisecond
	switch {
	case err != nil:
		log.Error("run ended, but its outcome could not be recorded; its lease will lapse and be recorded as abandoned", "error", err)
	case status == settle.Settled && report.Outcome == jobs.OutcomeSucceeded:
		log.Log(context.Background(), usual, "run ended", "duration", duration, "tries", report.Tries)
	case status == settle.Settled && report.RetryIn > 0:
		log.Warn("run failed; another node makes the next try", "duration", duration, "attempt", g.Lease.Attempt, "of", 1+g.Job.Retry.Max, "wait", report.RetryIn, "error", report.Error)
	case status == settle.Settled:
		log.Warn("run ended", "duration", duration, "tries", report.Tries, "reason", report.Reason, "error", report.Error)
	case status == ledger.Lost:
		log.Warn("run ended too late: somebody else had ended it, this report is kept beside that outcome", "answer", string(status))
	case status == ledger.NoSuchRun:
		log.Error("run ended, and nobody knows it any more: Redis lost its record, its outcome is only here", "error", report.Error)
	default:
		log.Error("run ended, but a record of its job is not understood by this version and was left alone; its outcome is only here", "answer", string(status), "error", report.Error)
	}
}
