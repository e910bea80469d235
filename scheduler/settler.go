package scheduler

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/ledger"
)

// settleDelay is how long a report waits for company before its batch is sent.
const settleDelay = 2 * time.Millisecond

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
	ended    func(r []ledger.Report, lent bool) // of each batch, once it was answered
	lend     func(int)                          // gives slots to others
	in       chan settling                      // from the runs
	out      chan []settling                    // to the carriers
	stop     chan struct{}                      // closed by the node, normally when no run is left
}

// settling is one report and where its answer goes.
type settling struct {
	*ending
	answer chan settled
}

type settled struct {
	word ledger.Word
	err  error
}

func newSettler(l *ledger.Ledger, f *failover, q *quiet, e *engine) *settler {
	return &settler{ledger: l, failover: f, quiet: q, ended: e.settled, lend: e.lend, in: make(chan settling), out: make(chan []settling), stop: make(chan struct{})}
}

// settle records a run's end; it returns when the ledger has answered, or with errStopped.
func (s *settler) settle(g grant, r ledger.Report) (ledger.Word, error) {
	answer := make(chan settled, 1)
	select {
	case s.in <- settling{&ending{grant: g, report: r}, answer}:
	case <-s.stop:
		s.ended([]ledger.Report{r}, false)
		return "", errStopped
	}
	got := <-answer
	return got.word, got.err
}

// run collects reports until the node closes stop.
func (s *settler) run() {
	defer close(s.out)
	byPart := make(map[int][]settling)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			s.flush(byPart)
			return
		case r := <-s.in:
			if len(byPart) == 0 {
				timer.Reset(settleDelay)
			}
			p := s.ledger.Partition(r.report.Job)
			byPart[p] = append(byPart[p], r)
			if len(byPart[p]) == ledger.BatchMax {
				s.out <- byPart[p]
				delete(byPart, p)
			}
		case <-timer.C:
			s.flush(byPart)
		}
	}
}

func (s *settler) flush(byPart map[int][]settling) {
	for _, p := range slices.Sorted(maps.Keys(byPart)) {
		s.out <- byPart[p]
		delete(byPart, p)
	}
}

// carry takes batches to Redis until there are none; when giveUp ends, batches that Redis does
// not take are answered with errStopped. On a Cluster they keep no carrier for long.
func (s *settler) carry(giveUp context.Context, aside *sync.WaitGroup) {
	for batch := range s.out {
		if s.quiet.apart {
			briefly(aside, func() { s.take(giveUp, batch) })
		} else {
			s.take(giveUp, batch)
		}
	}
}

// take takes one batch to Redis. While its partition is quiet, its runs lend their slots.
func (s *settler) take(giveUp context.Context, batch []settling) {
	part := s.ledger.Partition(batch[0].report.Job)
	if s.quiet.of(part) || !s.deliver(giveUp, batch, part, false) {
		answered := s.quiet.aside(part)
		s.lend(len(batch))
		s.deliver(giveUp, batch, part, true)
		answered()
	}
}

// deliver takes a batch to Redis and hands out the answers. False, only when not aside: its partition is quiet, and it is to be
// called again aside.
func (s *settler) deliver(giveUp context.Context, batch []settling, part int, aside bool) bool {
	reports := make([]ledger.Report, len(batch))
	for i, b := range batch {
		reports[i] = b.report
	}
	words, err := s.persist(giveUp, batch, reports, part, aside)
	if errors.Is(err, errQuiet) {
		return false
	}
	s.ended(reports, aside)
	for i, b := range batch {
		if err != nil {
			b.answer <- settled{err: err}
			continue
		}
		b.answer <- settled{word: words[i]}
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
				return nil, errQuiet
			}
		default:
			s.quiet.fail("settle", err, part)
		}
		if !aside && s.quiet.of(part) {
			return nil, errQuiet
		}
		if try >= settleTries && !errors.Is(err, locking.ErrUnreachable) && !redisconn.Full(err) && !redisconn.Denied(err) {
			return nil, err // not Redis that takes nothing at all: it keeps no other partition's reports waiting for ever
		}
		if !pause(giveUp, backoff(reports[0].Run, try)) {
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
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
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
