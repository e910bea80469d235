package scheduler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// Why a job is outside: this node does not claim it until it is registered (again).
const (
	unregistered = "not registered yet"
	superseded   = "superseded: another definition is stored and a living node holds it"
	displaced    = "another definition is stored" // whose, its registration is to show
	standby      = "on standby: another generation runs it"
	sealed       = "the namespace is closed by a move"
	vanished     = "the ledger has lost it"
	foreign      = "its record in the ledger is not understood by this version; it is left alone, update this node"
	moving       = "its entry kept moving while it was registered"
	crowded      = "too many jobs follow the one that it follows"
)

// registrar stores the node's definitions and gives jobs that are outside another try: at once
// when the ledger has lost them, else every rosterTTL; so after a rollback the older definition
// counts again as soon as no living node holds the newer one. Jobs that another generation runs are
// tried when a promotion begins, goes on or ends, see generations.go.
type registrar struct {
	n       *Node
	outside map[*job]string // why; every job at first
	rivals  map[*job]string // digests of what is stored of jobs that are superseded
	fresh   bool            // the first registration is still to come
	lost    chan struct{}   // holds one signal: Redis may have lost what it knew, register everything
	told    chan struct{}   // holds one signal: casts is not empty
	epoch   chan struct{}   // holds one signal: the epoch of promotions is another one
	ajar    chan struct{}   // holds one signal: what a move has closed may be open again
	stirred chan struct{}   // holds one signal: the crowd is another one
	around  *crowd          // the cluster as it was read after the answer that is being judged; nil: not yet
	idle    atomic.Bool     // all jobs are on standby
	waiting waiting
	shelf   shelf

	refollowed time.Time

	mu    sync.Mutex
	casts []outcast // from the engine, at most one a job until it is registered again
}

// outcast is a job that the engine cannot claim, and why.
type outcast struct {
	job *job
	why string
}

func newRegistrar(n *Node) *registrar {
	r := &registrar{
		n: n, outside: make(map[*job]string, len(n.jobs)), fresh: true, shelf: shelf{fresh: true, has: make(map[*job]bool)},
		lost: make(chan struct{}, 1), told: make(chan struct{}, 1), epoch: make(chan struct{}, 1),
		ajar: make(chan struct{}, 1), stirred: make(chan struct{}, 1), rivals: make(map[*job]string),
	}
	for _, j := range n.jobs {
		r.outside[j] = unregistered
	}
	return r
}

// run registers until ctx ends.
func (r *registrar) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	if len(r.n.jobs) == 0 {
		r.begun() // no answer will come
	}
	for try := 0; ; {
		var what scope
		select {
		case <-ctx.Done():
			return
		case <-r.told:
			if what = tryOutside; !r.take() {
				continue
			}
		case <-r.lost:
			what = tryAll
			r.n.log.Info("every job is registered again, in case that Redis has lost it")
			for _, j := range r.n.jobs {
				r.outside[j] = vanished
			}
		case <-r.epoch:
			what, r.waiting.looks = tryAll, true
		case <-r.ajar:
			what = r.knock()
		case <-r.stirred:
			if !r.freed() {
				continue
			}
			if wait := r.waiting.soon(); wait > 0 {
				timer.Reset(min(wait, r.pace()))
				continue
			}
			what = tryOutside
		case <-timer.C:
			what = r.waiting.over()
		}
		err := r.once(ctx, what)
		wait := r.pace()
		if err != nil && ctx.Err() == nil {
			if !errors.Is(err, errQuiet) { // it is known
				r.n.moves.refused(err)
				r.n.health.fail("register", err)
			}
			wait, try = backoff(r.n.id, try), try+1
		} else if err == nil {
			try = 0
		}
		timer.Reset(wait)
	}
}

// take takes up what the engine told, and says whether to register at once.
func (r *registrar) take() (now bool) {
	r.mu.Lock()
	casts := r.casts
	r.casts = nil
	r.mu.Unlock()
	for _, o := range casts {
		if o.why == superseded {
			o.why = displaced // by a newer build or another generation, once will tell
		}
		if r.outside[o.job] == "" && o.why != sealed && o.why != displaced { // that is said once for all, see once
			r.n.log.Warn("job is not claimed by this node any more", "job", o.job.Name, "why", o.why)
		}
		r.outside[o.job] = o.why
		now = now || o.why == vanished || o.why == sealed || o.why == displaced
	}
	return now
}

// once tries jobs that are outside and tells the engine.
func (r *registrar) once(ctx context.Context, what scope) error {
	if err := r.refollow(ctx); err != nil || len(r.outside) == 0 && !r.waiting.looks {
		return err
	}
	what, err := r.hope(ctx, what)
	if err != nil {
		return err
	}
	list := make([]*job, 0, len(r.outside))
	for j, why := range r.outside { // in no order; register makes one
		if what == tryAll || what == tryOutside && why != standby {
			list = append(list, j)
		}
	}
	began := time.Now()
	var left error // of quiet partitions
	if len(list) > 0 {
		control, err := r.restore(ctx)
		unheard := r.unheard(&err)
		if err != nil {
			return err
		}
		r.n.control.Store(&control)
		list = slices.DeleteFunc(list, func(j *job) bool { return slices.Contains(unheard, j.part) })
		if left = r.try(ctx, list); left != nil && !errors.Is(left, errQuiet) {
			return left
		}
		if len(unheard) > 0 {
			left = errQuiet
		}
		r.n.moves.taken()
	}
	r.waiting.tried(what, time.Since(began))
	r.stands()
	if err := r.shelve(ctx); err != nil {
		return err
	}
	r.n.health.ok("register")
	return left
}

// unheard takes an UnheardError out of err, tells of it, and returns its partitions.
func (r *registrar) unheard(err *error) []int {
	var e *ledger.UnheardError
	if !errors.As(*err, &e) {
		return nil
	}
	r.n.quiet.fail("register", e, e.Parts...)
	*err = nil
	return e.Parts
}

// knock says what to try to see whether what a move has closed is open again: whatever was answered closed, and some job at
// least.
func (r *registrar) knock() scope {
	for _, j := range r.n.jobs {
		if r.outside[j] != standby {
			r.outside[j] = cmp.Or(r.outside[j], sealed)
			return tryOutside
		}
	}
	return tryAll
}

// try registers jobs that are outside, but for those of quiet partitions.
func (r *registrar) try(ctx context.Context, list []*job) error {
	facts, err := r.register(ctx, list)
	if err != nil && !errors.Is(err, errQuiet) {
		return err
	}
	for _, f := range facts {
		was := r.outside[f.job]
		if delete(r.rivals, f.job); f.rival != "" {
			r.rivals[f.job] = f.rival
		}
		if f.outside == "" {
			delete(r.outside, f.job)
			continue
		}
		r.outside[f.job] = f.outside
		if was != f.outside && f.outside != standby {
			r.n.log.Warn("job is not claimed by this node", "job", f.job.Name, "why", f.outside, "detail", f.detail)
		}
	}
	r.n.engine.do(func() {
		for _, f := range facts {
			if f.outside == "" {
				r.n.engine.registered(f.job, f.cursor)
			}
		}
	})
	r.begun()
	return err
}

// active is the active generation as this node knows it: of the first node ever, if it knows nothing yet.
func (r *registrar) active() string {
	if c := r.n.control.Load(); c != nil {
		return c.Generation
	}
	return r.n.cfg.Generation
}

// refollowEvery is how often a node says again whom its jobs follow.
const refollowEvery = time.Minute

// refollow says so in case that Redis has lost it, or that two versions of a job, taking turns in a deploy,
// have left the wrong word behind.
func (r *registrar) refollow(ctx context.Context) error {
	if time.Since(r.refollowed) < refollowEvery || r.n.moves.isClosed() {
		return nil
	}
	for _, j := range r.n.jobs {
		if j.After == "" || r.outside[j] != "" {
			continue
		}
		err := r.tell(ctx, j.After, j.Name, r.n.ledger.Follow)
		if err != nil && !errors.Is(err, errQuiet) && (!errors.Is(err, ledger.ErrRefused) || errors.Is(err, ledger.ErrClosed)) { // else others have taken the places; its registration says so
			return err
		}
	}
	r.refollowed = time.Now()
	return nil
}

// expelled is told by the engine of a job that it cannot claim. It does not wait: the engine must
// not wait for a role that may be waiting for the engine.
func (r *registrar) expelled(j *job, why string) {
	r.mu.Lock()
	r.casts = append(r.casts, outcast{j, why})
	r.mu.Unlock()
	signal(r.told)
}

// wiped is told that Redis has lost what it knew, or may have.
func (r *registrar) wiped() { signal(r.lost) }

// signal leaves a signal in a channel that holds one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drop takes what is in a channel back out, and says whether there was anything.
func drop[T any](c <-chan T) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
