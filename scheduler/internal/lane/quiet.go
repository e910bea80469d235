package lane

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// quiet knows which partitions live at a master of a Cluster that does not answer. Nothing of theirs is claimed, swept or
// registered then, and what was asked of them already is repeated aside, so that all other partitions go on as if nothing was.
//
//	heard ── a call is not answered ──► quiet ── a probe or a call is answered, and nothing is repeated aside ──► heard
//
// Where all partitions live at one server there is nobody to be spared: none is ever quiet, and health alone hears of it. It also
// does when all masters are silent.
//
// It also knows which partitions are unconfirmed: too few replicas have what was granted there last, see Config.Confirm. Only claims
// wait for them, until a probe is confirmed.
type quiet struct {
	health *Health
	parts  int   // of the namespace
	apart  bool  // at masters of a Cluster
	own    []int // that have jobs of this node

	mu   sync.Mutex
	gone map[int]*absence
	back map[int]time.Time // when partitions could be claimed from again
	mute trouble           // that some are quiet
	lack trouble           // that some are unconfirmed
}

// home stands for the master of the control record, the roster and the clock, beside its partitions.
const home = -1

// absence is one partition's. It ends when all of it is over.
type absence struct {
	unheard     bool // the last call was not answered
	aside       int  // batches that are repeated
	unconfirmed bool
}

func (a *absence) quiet() bool { return a != nil && (a.unheard || a.aside > 0) }

func newQuiet(h *Health, parts int, apart bool, own []int) *quiet {
	return &quiet{health: h, parts: parts, apart: apart, own: own, gone: make(map[int]*absence), back: make(map[int]time.Time)}
}

// of says whether a partition is quiet.
func (q *quiet) of(part int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gone[part].quiet()
}

// shut says whether nothing is claimed from a partition: it is quiet or unconfirmed.
func (q *quiet) shut(part int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gone[part] != nil
}

// split parts the partitions into those that are heard and those that are quiet; where none can be quiet both are empty. It also
// names the unconfirmed ones among those that are heard.
func (q *quiet) split() (heard, silent, unconfirmed []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for p := range q.parts {
		a := q.gone[p]
		switch {
		case a.quiet():
			silent = append(silent, p)
		case q.apart:
			heard = append(heard, p)
		}
		if a != nil && a.unconfirmed && !a.quiet() {
			unconfirmed = append(unconfirmed, p)
		}
	}
	return heard, silent, unconfirmed
}

// count is how many partitions are quiet, and how many unconfirmed. The caller has the lock.
func (q *quiet) count() (silent, unconfirmed int) {
	for p, a := range q.gone {
		if p != home && a.quiet() {
			silent++
		}
		if a.unconfirmed {
			unconfirmed++
		}
	}
	return silent, unconfirmed
}

// trouble is why no job of this node is claimed, nil when some are or there is none.
func (q *quiet) trouble() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.own {
		if q.gone[p] == nil {
			return nil
		}
	}
	if err := cmp.Or(q.lack.err, q.mute.err); err != nil && len(q.own) > 0 {
		return fmt.Errorf("nothing is claimed: %w", err)
	}
	return nil
}

// fail takes up that a role's call to some partitions failed, and tells health unless others are heard. Without partitions it is not
// known which.
func (q *quiet) fail(role string, err error, parts ...int) {
	if !q.apart || !errors.Is(err, locking.ErrUnreachable) {
		q.health.Fail(role, err)
		return
	}
	q.mu.Lock()
	for _, p := range parts {
		q.at(p).unheard = true
	}
	some, _ := q.count()
	say := some < q.parts && len(parts) > 0 && q.mute.again(err)
	since := q.mute.since
	q.mu.Unlock()
	if some == q.parts {
		q.health.Fail(role, err)
		return
	}
	q.health.unanswered(err)
	if say {
		q.health.log.Warn("a master of the Cluster does not answer; jobs of its partitions wait, all others go on", "partitions", some, "of", q.parts,
			"error", err, "for", time.Since(since).Round(time.Millisecond))
	}
}

// ErrQuiet is the answer to what is not asked, or not any longer, because the partition is quiet.
var ErrQuiet = errors.New("the partition's master does not answer")

// full takes the refusal of a master that has no memory or disk left for what it is to the other masters: one that is away. Of one
// Redis it stays a refusal, which is said as such.
func (q *quiet) full(err error) error {
	if q.apart && redisconn.Full(err) {
		return fmt.Errorf("%w: %w", locking.ErrUnreachable, err)
	}
	return err
}

// spare is fail for who can do without the partition: ErrQuiet then, else the error.
func (q *quiet) spare(role string, err error, part int) error {
	err = q.full(err)
	if !q.apart || !errors.Is(err, locking.ErrUnreachable) {
		return err
	}
	q.fail(role, err, part)
	return ErrQuiet
}

// ok takes up that a role's call to some partitions was answered.
func (q *quiet) ok(role string, parts ...int) {
	q.mu.Lock()
	for _, p := range parts {
		if a := q.gone[p]; a != nil {
			a.unheard = false
			q.over(p, a)
		}
	}
	q.mu.Unlock()
	q.health.OK(role)
}

// unconfirmed takes up that too few replicas have what a master wrote, and which partitions live there.
func (q *quiet) unconfirmed(err error, parts ...int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range parts {
		q.at(p).unconfirmed = true
	}
	if !q.lack.again(err) {
		return
	}
	_, some := q.count()
	q.health.log.Warn("replicas do not confirm what is granted; it is handed back, and nothing is claimed from these partitions until they do",
		"partitions", some, "of", q.parts, "error", err, "for", time.Since(q.lack.since).Round(time.Millisecond))
}

// confirmed takes up that replicas confirm what is written to some partitions.
func (q *quiet) confirmed(parts ...int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range parts {
		if a := q.gone[p]; a != nil {
			a.unconfirmed = false
			q.over(p, a)
		}
	}
}

// aside takes up that a batch of a quiet partition is repeated until it is answered, and returns what is to be called then.
func (q *quiet) aside(part int) (answered func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.at(part)
	a.aside++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		a.aside--
		q.over(part, a)
	}
}

// at is the absence of a partition, which begins if it has none. The caller has the lock.
func (q *quiet) at(part int) *absence {
	if q.gone[part] == nil {
		q.gone[part] = &absence{}
	}
	return q.gone[part]
}

// over ends an absence, if it is over. The caller has the lock.
func (q *quiet) over(part int, a *absence) {
	if !a.quiet() && !a.unconfirmed {
		delete(q.gone, part)
		q.back[part] = time.Now()
	}
	silent, unconfirmed := q.count()
	if silent == 0 && q.gone[home] == nil && q.mute.err != nil {
		q.health.log.Info("all masters of the Cluster answer again", "after", time.Since(q.mute.since).Round(time.Millisecond))
		q.mute = trouble{}
	}
	if unconfirmed == 0 && q.lack.err != nil {
		q.health.log.Info("replicas confirm what is granted again", "after", time.Since(q.lack.since).Round(time.Millisecond))
		q.lack = trouble{}
	}
}

// late is how late something of a partition counts as for the turns of nodes, like health.late.
func (q *quiet) late(part int, by time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if back, was := q.back[part]; was {
		by = min(by, time.Since(back)-askedAnew)
	}
	return by
}
