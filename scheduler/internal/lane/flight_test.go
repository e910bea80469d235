package lane

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const skew = time.Second

// flown is a batch of one claim of a tick, in a state that its requests began so long ago.
func flown(s flightState, age time.Duration, unanswered bool) (*flight, time.Time) {
	now := time.Now()
	f := &flight{Batch: &work.Batch{Claims: []claim.Claim{{From: 1}}, Created: now.Add(-age), Unanswered: unanswered}, skew: skew, state: s}
	if s != unsent {
		f.FirstSent, f.lastGrantable = now.Add(-age), now.Add(-min(age, age/2))
	}
	return f, now
}

// TestFlightDeparts: whether and how a batch is sent, by its state and age.
func TestFlightDeparts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from    flightState
		age     time.Duration
		blocked bool
		want    flightState
	}{
		"a fresh batch":                   {unsent, 0, false, claiming},
		"one that is too old":             {unsent, 2*skew + 1, false, over},
		"one whose partition is blocked":  {unsent, 0, true, over},
		"once sent, a block is no matter": {claiming, 0, true, claiming},
		"within MaxSkew":                  {claiming, skew, false, claiming},
		"after it":                        {claiming, skew + 1, false, asking},
		"an asking one":                   {asking, time.Hour, true, asking},
	} {
		f, now := flown(c.from, c.age, false)
		if got := f.depart(now, c.blocked); got != c.want {
			t.Errorf("%s is %v, want %v", name, got, c.want)
		}
		if notSent := errors.Is(f.Err, work.ErrNotSent); notSent != (c.want == over) || (c.want != over && !f.LastSent.Equal(now)) {
			t.Errorf("%s: error %v, sent %v", name, f.Err, f.LastSent)
		}
	}
}

// TestFlightArrives: the state of a batch after each reply.
func TestFlightArrives(t *testing.T) {
	t.Parallel()
	stale, granted := claim.Answer{Verdict: claim.Stale}, claim.Answer{Verdict: claim.Granted}
	for name, c := range map[string]struct {
		from       flightState
		age        time.Duration // since the first request; half of it since the last request that may be granted
		unanswered bool
		reply      reply
		answer     claim.Answer
		draining   bool
		want       flightState
	}{
		"a no to a claim":                           {claiming, 0, false, accepted, stale, false, over},
		"a no to a question, too early":             {asking, 2 * skew, true, accepted, stale, false, asking},
		"a no to a question, for certain":           {asking, 4*skew + 2, true, accepted, stale, false, over},
		"a yes to a question":                       {asking, 2 * skew, true, accepted, granted, false, over},
		"refused":                                   {claiming, 0, true, refused, stale, false, over},
		"held, nothing was carried out":             {claiming, 0, false, held, stale, false, unsent},
		"held, an earlier request is in doubt":      {claiming, 0, true, held, stale, false, claiming},
		"a question is held, nothing was done":      {asking, 2 * skew, false, held, stale, false, over},
		"a question migrates, nothing was done":     {asking, 2 * skew, false, migrating, stale, false, over},
		"migrating, nothing was carried out":        {claiming, 0, false, migrating, stale, false, over},
		"migrating, an earlier request is in doubt": {asking, 2 * skew, true, migrating, stale, false, asking},
		"refused by the clock":                      {claiming, 0, false, clockRefused, stale, false, claiming},
		"no answer":                                 {claiming, 0, false, unreachable, stale, false, claiming},
		"no answer while the node drains":           {asking, 3 * skew, true, unreachable, stale, true, asking},
		"no answer at the end of a drain":           {asking, 3*skew + 1, true, unreachable, stale, true, over},
		"held while the node drains":                {claiming, 3*skew + 1, false, held, stale, true, unsent},
	} {
		f, now := flown(c.from, c.age, c.unanswered)
		f.Answers, f.requests = []claim.Answer{c.answer}, 7
		if got := f.arrive(c.reply, now, c.draining); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if f.Repeated != (c.want != over) || f.FirstSent.IsZero() != (c.want == unsent) || f.Unanswered != (c.unanswered || c.reply == unreachable) {
			t.Errorf("%s: %+v", name, f)
		}
		if fresh := f.requests == 0; fresh != (c.reply == held || c.reply == migrating) {
			t.Errorf("%s: the backoff begins anew: %t", name, fresh)
		}
	}
}

// A question grants nothing: a tick is claimed from no cursor, and a pending run that may not start any more is dropped.
func TestAskOnly(t *testing.T) {
	t.Parallel()
	f := &flight{Batch: &work.Batch{Claims: []claim.Claim{{From: 1000}, {Pending: true}, {Pending: true}}, StartBy: []int64{0, 2000, 4000}}}
	f.askOnly(3000)
	if f.Claims[0].From != 0 || f.Claims[1].Drop != ledger.ReasonStartWithin || f.Claims[2].Drop != "" {
		t.Errorf("%+v", f.Claims)
	}
}

// TestReportFlight: a batch of reports is over when it is recorded, or refused for long by a Redis that takes other reports.
func TestReportFlight(t *testing.T) {
	t.Parallel()
	unreached, full := fmt.Errorf("x: %w", locking.ErrUnreachable), redisconn.Classify("settle", redisAnswer("OOM command not allowed"))
	for name, c := range map[string]struct {
		reply    reply
		err      error
		failures int
		over     bool
		after    int
	}{
		"recorded":                {accepted, nil, 3, true, 3},
		"held":                    {held, failover.ErrHolding, 9, false, 1},
		"migrating":               {migrating, unreached, 9, false, 1},
		"no answer, for long":     {unreachable, unreached, settleTries, false, settleTries + 1},
		"refused":                 {refused, redisAnswer("ERR"), settleTries - 1, false, settleTries},
		"refused for long":        {refused, redisAnswer("ERR"), settleTries, true, settleTries},
		"without memory":          {refused, full, settleTries, false, settleTries + 1},
		"another clock, for long": {clockRefused, ledger.ErrClock, settleTries, true, settleTries},
	} {
		f := newReportFlight([]settling{{Ending: &failover.Ending{Grant: work.Grant{Job: &work.Job{Part: 3}}}}})
		f.failures, f.err = c.failures, c.err
		if got := f.arrive(c.reply); got != c.over || f.failures != c.after || f.part() != 3 {
			t.Errorf("%s: over is %t after %d failures", name, got, f.failures)
		}
	}
}

// TestReplyOf: which errors mean what, on an only server and on a Cluster.
func TestReplyOf(t *testing.T) {
	t.Parallel()
	moved := redisconn.Classify("claim", redisAnswer("TRYAGAIN Multiple keys request during rehashing of slot"))
	for _, c := range []struct {
		err             error
		only, clustered reply
	}{
		{nil, accepted, accepted},
		{failover.ErrHolding, held, held},
		{fmt.Errorf("claim: %w", ledger.ErrServer), held, held},
		{fmt.Errorf("claim: %w", ledger.ErrClock), clockRefused, clockRefused},
		{fmt.Errorf("claim: %w", locking.ErrUnreachable), unreachable, unreachable},
		{errors.New("ERR"), refused, refused},
		{moved, (&link{}).replyOf(moved), migrating},
	} {
		if only, clustered := (&link{}).replyOf(c.err), (&link{clustered: true}).replyOf(c.err); only != c.only || clustered != c.clustered {
			t.Errorf("%v is %v on an only server, %v on a Cluster", c.err, only, clustered)
		}
	}
}
