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

// A report waits for company: for settleDelay after the last one, so that the runs of one instant have begun before their ends take the
// processor, and for settleMost at most.
const (
	settleDelay = 2 * time.Millisecond
	settleMost  = 20 * time.Millisecond
)

// settleTries is how often a report is repeated that Redis refuses though it is there and takes others: about 15 s.
const settleTries = 20

// errStopped is the answer to a report that was still unsettled when the node gave up.
var errStopped = errors.New("the node stopped before Redis took the report")

// settler collects a lane's reports into batches by partition and repeats each until it is answered. It
// holds no more reports than the node has slots. While the breaker is open they hold none, and there are as many again
// at most, for nothing is claimed there meanwhile.
type settler struct {
	l    *Lane
	wake chan struct{} // holds one signal: there are reports

	mu      sync.Mutex
	piles   map[int]*pile // by partition
	last    time.Time     // when the last report came
	stopped bool
}

// pile is the reports of one partition.
type pile struct {
	part    int
	first   time.Time // when the first of them came
	reports []settling
}

// settling is one report, and who is told what became of it.
type settling struct {
	*ending
	then  work.SettleListener
	freed bool // it holds no slot any more
}

func newSettler(l *Lane) *settler {
	return &settler{l: l, wake: make(chan struct{}, 1), piles: make(map[int]*pile)}
}

// Settle records a run's end; then is told when the ledger has answered, or with errStopped.
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
		case !l.moved(g.Job.Part):
			n.Inbox.Send(agenda.Settled{Reports: []ledger.Report{r}, Slots: 1})
			then.Settled(r, "", errStopped)
			return
		}
	}
}

// add adds a report of a partition; false when nothing is taken to Redis any more.
func (s *settler) add(part int, r settling) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.last = time.Now()
	p := s.piles[part]
	if p == nil {
		p = &pile{part: part, first: s.last}
		s.piles[part] = p
	}
	if p.reports = append(p.reports, r); len(p.reports) == 1 || len(p.reports) == ledger.BatchMax {
		wait.Signal(s.wake)
	}
	return true
}

// next is the next batch, of one partition: of the pile that waits longest, or a full one; or how long it is until there is one, 0 when
// there are no reports. With all it is whatever there is.
func (s *settler) next(all bool) (batch []settling, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var p, full *pile
	for _, x := range s.piles {
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
		delete(s.piles, p.part)
	}
	if len(s.piles) > 0 {
		wait.Signal(s.wake) // for the other carrier
	}
	return batch, 0
}

// before says whether a pile has waited for longer than another one.
func (p *pile) before(other *pile) bool {
	if !p.first.Equal(other.first) {
		return p.first.Before(other.first)
	}
	return p.part < other.part
}

// carry takes batches to Redis until the lane is over, and there are none left; when Terms.Alive ends, batches that Redis does
// not take are answered with errStopped.
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

// take takes a batch to Redis and hands out the answers. False: it has to wait for a failover of its partition, and is to be taken in a
// goroutine of its own, detached, whatever lane the partition comes to.
func (s *settler) take(giveUp context.Context, batch []settling, detached bool) (done bool) {
	reports := make([]ledger.Report, len(batch))
	for i, b := range batch {
		reports[i] = b.Report
	}
	words, err := s.persist(giveUp, batch, reports, detached)
	if errors.Is(err, errDetach) {
		return false
	}
	slots := 0
	for _, b := range batch {
		if !b.freed {
			slots++
		}
	}
	s.l.Inbox.Send(agenda.Settled{Reports: reports, Slots: slots})
	for i, b := range batch {
		if err != nil {
			b.then.Settled(b.Report, "", err)
			continue
		}
		b.then.Settled(b.Report, words[i], nil)
	}
	return true
}

// errDetach is the answer to a batch that is to be detached.
var errDetach = errors.New("the partition's master is to be told of its runs")

// persist asks until the server that knows the runs has taken their ends. While it does not, they hold no slots on a Cluster, nor do those
// behind them.
func (s *settler) persist(giveUp context.Context, batch []settling, reports []ledger.Report, detached bool) ([]ledger.Status, error) {
	part := batch[0].Grant.Job.Part
	var doubt doubt
	defer doubt.end()
	for try := 0; ; try++ {
		l := s.l
		if detached {
			l = l.lanes.of(part)
		}
		words, err := l.settle(batch, reports, part)
		held := errors.Is(err, errHolding) || errors.Is(err, ledger.ErrServer) || l.apart && redisconn.OfSlot(err)
		switch {
		case err == nil:
			l.breaker.ok("settle")
			return words, nil
		case held: // it does not know these runs yet
			try = 0
		default:
			l.fail("settle", err)
		}
		if try >= settleTries && !errors.Is(err, locking.ErrUnreachable) && !redisconn.Full(err) && !redisconn.Denied(err) {
			return nil, err // not Redis that takes nothing at all: it keeps no other partition's reports waiting for ever
		}
		if l.apart && held {
			doubt.end()
			l.settler.free(batch, nil)
		} else if l.apart && l.breaker.open() {
			doubt.begin(l.breaker)
			l.settler.free(batch, l.settler.piles)
		}
		if !wait.For(giveUp, wait.Backoff(reports[0].Run, try)) {
			return nil, errors.Join(errStopped, err)
		}
		if l.apart && !detached && (held || l.moved(part)) {
			return nil, errDetach
		}
	}
}

// free gives back the slots of a batch, and of what waits in some piles.
func (s *settler) free(batch []settling, piles map[int]*pile) {
	slots := 0
	free := func(all []settling) {
		for i := range all {
			if !all[i].freed {
				all[i].freed = true
				slots++
			}
		}
	}
	free(batch)
	s.mu.Lock()
	for _, p := range piles {
		free(p.reports)
	}
	s.mu.Unlock()
	if slots > 0 {
		s.l.Inbox.Send(agenda.SlotsFreed{Slots: slots})
	}
}

// settle asks once. The answer of a server that is none any more counts for nothing.
func (l *Lane) settle(batch []settling, reports []ledger.Report, part int) ([]ledger.Status, error) {
	f := l.failover
	server, waits := f.keeps(part)
	for _, r := range reports {
		if _, is := waits[r.Run]; is {
			return nil, errHolding
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
	defer cancel()
	words, err := l.Ledger.At(server).Settle(ctx, reports)
	if errors.Is(err, ledger.ErrServer) {
		f.doubt()
	}
	if err != nil {
		return nil, l.breaker.full(err)
	}
	ends := make([]*ending, 0, len(batch))
	for i, word := range words {
		if word == ledger.Settled {
			ends = append(ends, batch[i].ending)
		}
	}
	if !f.noticed(server, part, ends...) {
		return nil, ledger.ErrServer
	}
	return words, nil
}
