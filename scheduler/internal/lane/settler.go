package lane

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// A report waits until no other has come for settleDelay, settleMost at most: the runs of one
// instant then begin before their reports take the processor.
const (
	settleDelay = 2 * time.Millisecond
	settleMost  = 20 * time.Millisecond
)

// settleTries is how often a report is sent that a reachable Redis refuses: for about 15 s.
const settleTries = 20

// errStopped is the answer to a report that was not recorded when the node stopped.
var errStopped = errors.New("the node stopped before Redis took the report")

// settler collects a lane's reports into batches by partition and sends each until it is answered.
// It holds at most as many reports as the node has slots. While the breaker is open its reports
// release their slots; there are then at most as many again, because nothing is claimed there.
type settler struct {
	home  *link
	links links
	inbox *agenda.Inbox
	ended func(job string) // called when a run of a job is recorded as ended
	wake  chan struct{}    // holds one signal: there are reports

	mu      sync.Mutex
	queues  map[int]*reportQueue // by partition
	last    time.Time            // when the last report came
	stopped bool
}

func newSettler(home *link, of links, inbox *agenda.Inbox, ended func(job string)) *settler {
	return &settler{home: home, links: of, inbox: inbox, ended: ended, wake: make(chan struct{}, 1), queues: make(map[int]*reportQueue)}
}

// reportQueue holds the reports of one partition.
type reportQueue struct {
	part    int
	first   time.Time // when its first report came
	reports []settling
}

// add queues a report; false when the settler has stopped.
func (s *settler) add(part int, r settling) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.last = time.Now()
	p := s.queues[part]
	if p == nil {
		p = &reportQueue{part: part, first: s.last}
		s.queues[part] = p
	}
	if p.reports = append(p.reports, r); len(p.reports) == 1 || len(p.reports) == ledger.BatchMax {
		wait.Signal(s.wake)
	}
	return true
}

// next is the next batch, of one partition: a full batch, or the batch that has waited longest.
// Without one, left is the time until there is one, 0 when there are no reports. With all it takes
// every report.
func (s *settler) next(all bool) (batch []settling, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var p, full *reportQueue
	for _, x := range s.queues {
		if p == nil || x.before(p) {
			p = x
		}
		if len(x.reports) >= ledger.BatchMax && (full == nil || x.before(full)) {
			full = x
		}
	}
	if p == nil {
		return nil, 0
	}
	now := time.Now()
	left = min(settleDelay-now.Sub(s.last), settleMost-now.Sub(p.first))
	switch {
	case all || now.Sub(p.first) >= settleMost:
	case full != nil:
		p = full
	case left > 0:
		return nil, left
	}
	n := min(len(p.reports), ledger.BatchMax)
	batch = p.reports[:n:n]
	if p.reports, p.first = p.reports[n:], now; len(p.reports) == 0 {
		delete(s.queues, p.part)
	}
	if len(s.queues) > 0 {
		wait.Signal(s.wake) // for the other goroutine of the settler
	}
	return batch, 0
}

// before reports whether a queue has waited longer than another.
func (p *reportQueue) before(other *reportQueue) bool {
	if !p.first.Equal(other.first) {
		return p.first.Before(other.first)
	}
	return p.part < other.part
}

// run sends batches until the lane has ended and none is left. When Terms.Alive ends, batches
// that Redis does not record are answered with errStopped.
func (s *settler) run(t *Terms, ended <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for stopped := false; ; {
		switch batch, left := s.next(stopped); {
		case batch != nil:
			s.carry(t, newReportFlight(batch))
		case stopped:
			return
		default:
			timer.Reset(cmp.Or(left, time.Hour))
			select {
			case <-timer.C:
			case <-s.wake:
			case <-ended:
				stopped = true
				s.mu.Lock()
				s.stopped = true
				s.mu.Unlock()
			}
		}
	}
}

// carry sends a batch and passes on the answers. A batch that has to wait for a failover of its partition gets its own goroutine.
func (s *settler) carry(t *Terms, f *reportFlight) {
	if !s.send(t.Alive, f) {
		f.detached = true
		t.Group.Go(func() { s.carry(t, f) })
		return
	}
	slots := 0
	for _, b := range f.batch {
		if !b.slotFreed {
			slots++
		}
	}
	s.inbox.Send(agenda.Settled{Reports: f.reports, Slots: slots})
	f.answer()
	if f.err == nil {
		for _, r := range f.reports {
			s.ended(r.Job)
		}
	}
}

// send sends a batch until it is over: until the master of its runs has recorded them. On a
// Cluster, waiting reports release their slots, and so do the reports behind them. False: the batch
// is to go on detached.
func (s *settler) send(giveUp context.Context, f *reportFlight) (done bool) {
	var doubt inDoubt
	defer doubt.end()
	for {
		k := s.home
		if f.detached {
			k = s.links(f.part())
		}
		f.err = s.request(k, f)
		r := k.replyOf(f.err)
		waits := r == held || r == migrating
		switch {
		case r == accepted:
			k.breaker.ok("settle")
		case !waits:
			k.breaker.Fail("settle", f.err)
		}
		if f.arrive(r) {
			return true
		}
		if k.clustered && waits {
			doubt.end()
			s.freeSlots(f, false)
		} else if k.clustered && k.breaker.open() {
			doubt.begin(k.breaker)
			s.freeSlots(f, !f.detached)
		}
		if !wait.For(giveUp, wait.Backoff(f.reports[0].Run, f.failures-1)) {
			f.err = errors.Join(errStopped, f.err)
			return true
		}
		if k.clustered && !f.detached && (waits || s.links(f.part()) != s.home) {
			return false
		}
	}
}

// request sends a batch once.
func (s *settler) request(k *link, f *reportFlight) error {
	runs := make([]string, len(f.reports))
	for i, r := range f.reports {
		runs[i] = r.Run
	}
	return k.endRuns(f.part(), runs, func(ctx context.Context, at *ledger.Ledger) (ends []*failover.Ending, err error) {
		f.statuses, err = settle.Settle(ctx, at, f.reports)
		return f.recorded(), err
	})
}

// freeSlots releases the slots of a batch, and of the reports that wait behind it.
func (s *settler) freeSlots(f *reportFlight, behind bool) {
	slots := 0
	free := func(all []settling) {
		for i := range all {
			if !all[i].slotFreed {
				all[i].slotFreed = true
				slots++
			}
		}
	}
	free(f.batch)
	if behind {
		s.mu.Lock()
		for _, p := range s.queues {
			free(p.reports)
		}
		s.mu.Unlock()
	}
	if slots > 0 {
		s.inbox.Send(agenda.SlotsFreed{Slots: slots})
	}
}
