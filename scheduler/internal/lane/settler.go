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

// settler collects reports into batches by partition and repeats each until it is answered. It
// holds no more reports than the node has slots, besides those of quiet partitions, which lend theirs: as many again for each of them
// at most, for nothing is claimed there meanwhile.
type settler struct {
	ledger   *ledger.Ledger
	failover *failover
	quiet    *quiet
	inbox    *agenda.Inbox
	wake     chan struct{} // holds one signal: there are reports
	stop     chan struct{} // closed by the node, normally when no run is left

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
	then work.Settled
}

func newSettler(l *ledger.Ledger, f *failover, q *quiet, inbox *agenda.Inbox) *settler {
	return &settler{ledger: l, failover: f, quiet: q, inbox: inbox, wake: make(chan struct{}, 1), stop: make(chan struct{}), piles: make(map[int]*pile)}
}

// Settle records a run's end; then is told when the ledger has answered, or with errStopped.
func (n *Lane) Settle(g work.Grant, r ledger.Report, then work.Settled) {
	if !n.settler.add(g.Job.Part, settling{&ending{Grant: g, Report: r}, then}) {
		n.Inbox.Tell(agenda.Settled{Reports: []ledger.Report{r}})
		then.Settled(r, "", errStopped)
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

// carry takes batches to Redis until the node closes stop, and there are none left; when giveUp ends, batches that Redis does
// not take are answered with errStopped. On a Cluster they keep no carrier for long.
func (s *settler) carry(giveUp context.Context, aside *sync.WaitGroup) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for stopped := false; ; {
		switch batch, left := s.next(stopped); {
		case batch != nil && s.quiet.apart:
			briefly(aside, func() { s.take(giveUp, batch) })
		case batch != nil:
			s.take(giveUp, batch)
		case stopped:
			return
		default:
			timer.Reset(cmp.Or(left, time.Hour))
			select {
			case <-timer.C:
			case <-s.wake:
			case <-s.stop:
				stopped = true
				s.mu.Lock()
				s.stopped = true
				s.mu.Unlock()
			}
		}
	}
}

// take takes one batch to Redis. While its partition is quiet, its runs lend their slots.
func (s *settler) take(giveUp context.Context, batch []settling) {
	part := batch[0].Grant.Job.Part
	if s.quiet.of(part) || !s.deliver(giveUp, batch, part, false) {
		answered := s.quiet.aside(part)
		s.inbox.Tell(agenda.Lend{Slots: len(batch)})
		s.deliver(giveUp, batch, part, true)
		answered()
	}
}

// deliver takes a batch to Redis and hands out the answers. False, only when not aside: its partition is quiet, and it is to be
// called again aside.
func (s *settler) deliver(giveUp context.Context, batch []settling, part int, aside bool) bool {
	reports := make([]ledger.Report, len(batch))
	for i, b := range batch {
		reports[i] = b.Report
	}
	words, err := s.persist(giveUp, batch, reports, part, aside)
	if errors.Is(err, ErrQuiet) {
		return false
	}
	s.inbox.Tell(agenda.Settled{Reports: reports, Lent: aside})
	for i, b := range batch {
		if err != nil {
			b.then.Settled(b.Report, "", err)
			continue
		}
		b.then.Settled(b.Report, words[i], nil)
	}
	return true
}

// persist asks until the server that knows the runs has taken their ends; when not aside, on a Cluster, until their partition is quiet or
// has a server that does not know them yet.
func (s *settler) persist(giveUp context.Context, batch []settling, reports []ledger.Report, part int, aside bool) ([]ledger.Word, error) {
	for try := 0; ; try++ {
		words, err := s.once(batch, reports)
		switch {
		case err == nil:
			s.quiet.ok("settle", part)
			return words, nil
		case errors.Is(err, errHolding), errors.Is(err, ledger.ErrServer): // it does not know these runs yet
			if try = 0; !aside && s.quiet.apart {
				return nil, ErrQuiet
			}
		default:
			s.quiet.fail("settle", err, part)
		}
		if !aside && s.quiet.of(part) {
			return nil, ErrQuiet
		}
		if try >= settleTries && !errors.Is(err, locking.ErrUnreachable) && !redisconn.Full(err) && !redisconn.Denied(err) {
			return nil, err // not Redis that takes nothing at all: it keeps no other partition's reports waiting for ever
		}
		if !wait.For(giveUp, wait.Backoff(reports[0].Run, try)) {
			return nil, errors.Join(errStopped, err)
		}
	}
}

// once asks once. The answer of a server that is none any more counts for nothing.
func (s *settler) once(batch []settling, reports []ledger.Report) ([]ledger.Word, error) {
	server, waits := s.failover.keeps()
	for _, r := range reports {
		if _, is := waits[r.Run]; is {
			return nil, errHolding
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
	defer cancel()
	words, err := s.ledger.At(server).Settle(ctx, reports)
	if errors.Is(err, ledger.ErrServer) {
		s.failover.doubt()
	}
	if err != nil {
		return nil, s.quiet.full(err)
	}
	ends := make([]*ending, 0, len(batch))
	for i, word := range words {
		if word == ledger.Settled {
			ends = append(ends, batch[i].ending)
		}
	}
	if !s.failover.remember(server, s.ledger.Partition(reports[0].Job), ends) {
		return nil, ledger.ErrServer
	}
	return words, nil
}
