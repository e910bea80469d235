package lane

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
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
	l    *Lane
	wake chan struct{} // holds one signal: there are reports

	mu      sync.Mutex
	queues  map[int]*reportQueue // by partition
	last    time.Time            // when the last report came
	stopped bool
}

// reportQueue holds the reports of one partition.
type reportQueue struct {
	part    int
	first   time.Time // when its first report came
	reports []settling
}

// settling is one report, and who gets its answer.
type settling struct {
	*ending
	then      work.SettleListener
	slotFreed bool // it holds no slot any more
}

func newSettler(l *Lane) *settler {
	return &settler{l: l, wake: make(chan struct{}, 1), queues: make(map[int]*reportQueue)}
}

// Settle records a run's end. then gets the ledger's answer, or errStopped.
func (n *Lanes) Settle(g work.Grant, r ledger.Report, then work.SettleListener) {
	for {
		l := n.of(g.Job.Part)
		freed := l.breaker.open()
		switch taken := l.settler.add(g.Job.Part, settling{&ending{Grant: g, Report: r}, then, freed}); {
		case taken && freed:
			n.Inbox.Send(agenda.SlotsFreed{Slots: 1})
			return
		case taken:
			return
		case !l.lost(g.Job.Part):
			n.Inbox.Send(agenda.Settled{Reports: []ledger.Report{r}, Slots: 1})
			then.Settled(r, "", errStopped)
			return
		}
	}
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

// next is the next batch, of one partition: a full one, or the one that has waited longest. Without
// one, left is the time until there is one, 0 when there are no reports. With all it takes whatever
// there is.
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
		wait.Signal(s.wake) // for the other carrier
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

// carry sends batches until the lane has ended and none is left. When Terms.Alive ends, batches
// that Redis does not record are answered with errStopped.
func (s *settler) carry(t *Terms, over <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for stopped := false; ; {
		switch batch, left := s.next(stopped); {
		case batch != nil:
			if !s.take(t.Alive, batch, false) {
				t.Group.Go(func() { s.take(t.Alive, batch, true) })
			}
		case stopped:
			return
		default:
			timer.Reset(cmp.Or(left, time.Hour))
			select {
			case <-timer.C:
			case <-s.wake:
			case <-over:
				stopped = true
				s.mu.Lock()
				s.stopped = true
				s.mu.Unlock()
			}
		}
	}
}

// take sends a batch and passes on the answers. False: the batch waits for a failover of its
// partition, and is to be sent in its own goroutine, detached from this lane.
func (s *settler) take(giveUp context.Context, batch []settling, detached bool) (done bool) {
	reports := make([]ledger.Report, len(batch))
	for i, b := range batch {
		reports[i] = b.Report
	}
	statuses, err := s.persist(giveUp, batch, reports, detached)
	if errors.Is(err, errDetach) {
		return false
	}
	slots := 0
	for _, b := range batch {
		if !b.slotFreed {
			slots++
		}
	}
	s.l.Inbox.Send(agenda.Settled{Reports: reports, Slots: slots})
	for i, b := range batch {
		if err != nil {
			b.then.Settled(b.Report, "", err)
			continue
		}
		b.then.Settled(b.Report, statuses[i], nil)
		s.l.feeder.ended(b.Report.Job)
	}
	return true
}

// errDetach is returned for a batch that is to be detached.
var errDetach = errors.New("the partition's master needs to know its runs first")

// persist sends reports until the server that knows their runs has recorded them. On a Cluster,
// waiting reports release their slots, and so do those behind them.
func (s *settler) persist(giveUp context.Context, batch []settling, reports []ledger.Report, detached bool) ([]ledger.Status, error) {
	part := batch[0].Grant.Job.Part
	var doubt inDoubt
	defer doubt.end()
	for try := 0; ; try++ {
		l := s.l
		if detached {
			l = l.lanes.of(part)
		}
		statuses, err := l.settle(batch, reports, part)
		held := l.isHeld(err)
		switch {
		case err == nil:
			l.breaker.ok("settle")
			return statuses, nil
		case held: // it does not know these runs yet
			try = 0
		default:
			l.fail("settle", err)
		}
		if try >= settleTries && !errors.Is(err, locking.ErrUnreachable) && !redisconn.Full(err) && !redisconn.Denied(err) {
			return nil, err // Redis takes other reports: this batch must not keep them waiting
		}
		if l.clustered && held {
			doubt.end()
			l.settler.freeSlots(batch, nil)
		} else if l.clustered && l.breaker.open() {
			doubt.begin(l.breaker)
			l.settler.freeSlots(batch, l.settler.queues)
		}
		if !wait.For(giveUp, wait.Backoff(reports[0].Run, try)) {
			return nil, errors.Join(errStopped, err)
		}
		if l.clustered && !detached && (held || l.lost(part)) {
			return nil, errDetach
		}
	}
}

// freeSlots releases the slots of a batch, and of what waits in some queues.
func (s *settler) freeSlots(batch []settling, queues map[int]*reportQueue) {
	slots := 0
	free := func(all []settling) {
		for i := range all {
			if !all[i].slotFreed {
				all[i].slotFreed = true
				slots++
			}
		}
	}
	free(batch)
	s.mu.Lock()
	for _, p := range queues {
		free(p.reports)
	}
	s.mu.Unlock()
	if slots > 0 {
		s.l.Inbox.Send(agenda.SlotsFreed{Slots: slots})
	}
}

// settle sends a batch once.
func (l *Lane) settle(batch []settling, reports []ledger.Report, part int) (statuses []ledger.Status, err error) {
	runs := make([]string, len(reports))
	for i, r := range reports {
		runs[i] = r.Run
	}
	err = l.endRuns(part, runs, func(ctx context.Context, at *ledger.Ledger) (ends []*ending, err error) {
		statuses, err = at.Settle(ctx, reports)
		for i, status := range statuses {
			if status == ledger.Settled {
				ends = append(ends, batch[i].ending)
			}
		}
		return ends, err
	})
	return statuses, err
}
