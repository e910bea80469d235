package scheduler

import (
	"errors"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// quiet knows which partitions live at a master of a Cluster that does not answer. Nothing of theirs is claimed, swept or
// registered then, and what was asked of them already is repeated aside, so that all other partitions go on as if nothing was.
//
//	heard ── a call is not answered ──► quiet ── a probe or a call is answered, and nothing is repeated aside ──► heard
//
// Where all partitions live at one server there is nobody to be spared: none is ever quiet, and health alone hears of it. It also
// does when all masters are silent.
type quiet struct {
	health *health
	parts  int // of the namespace; 0 where one server has them all

	mu    sync.Mutex
	gone  map[int]*absence
	back  map[int]time.Time // when partitions that were quiet answered again
	whole trouble           // that some are quiet
}

// absence is one partition's. It ends when both are over.
type absence struct {
	unheard bool // the last call was not answered
	aside   int  // batches that are repeated
}

func newQuiet(h *health) *quiet {
	return &quiet{health: h, gone: make(map[int]*absence), back: make(map[int]time.Time)}
}

// of says whether a partition is quiet.
func (q *quiet) of(part int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gone[part] != nil
}

// split parts the partitions into those that are heard and those that are quiet. Where none can be quiet both are empty.
func (q *quiet) split() (heard, quiet []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for p := range q.parts {
		if q.gone[p] == nil {
			heard = append(heard, p)
		} else {
			quiet = append(quiet, p)
		}
	}
	return heard, quiet
}

// fail takes up that a role's call to some partitions failed, and tells health unless others are heard.
func (q *quiet) fail(role string, err error, parts ...int) {
	if q.parts == 0 || !errors.Is(err, locking.ErrUnreachable) {
		q.health.fail(role, err)
		return
	}
	q.mu.Lock()
	for _, p := range parts {
		q.at(p).unheard = true
	}
	some := len(q.gone)
	say := some < q.parts && q.whole.again(err)
	since := q.whole.since
	q.mu.Unlock()
	if some == q.parts {
		q.health.fail(role, err)
		return
	}
	q.health.unanswered(err)
	if say {
		q.health.log.Warn("a master of the Cluster does not answer; jobs of its partitions wait, all others go on", "partitions", some, "of", q.parts,
			"error", err, "for", time.Since(since).Round(time.Millisecond))
	}
}

// errQuiet is the answer to what is not asked, or not any longer, because the partition is quiet.
var errQuiet = errors.New("the partition's master does not answer")

// spare is fail for who can do without the partition: errQuiet then, else the error.
func (q *quiet) spare(role string, err error, part int) error {
	if q.parts == 0 || !errors.Is(err, locking.ErrUnreachable) {
		return err
	}
	q.fail(role, err, part)
	return errQuiet
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
	q.health.ok(role)
}

// aside takes up that a batch of a quiet partition is repeated until it is answered, and returns what is to be called then.
func (q *quiet) aside(part int) (answered func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.at(part).aside++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		a := q.gone[part]
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
	if a.unheard || a.aside > 0 {
		return
	}
	delete(q.gone, part)
	q.back[part] = time.Now()
	if len(q.gone) == 0 {
		q.health.log.Info("all masters of the Cluster answer again", "after", time.Since(q.whole.since).Round(time.Millisecond))
		q.whole = trouble{}
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
