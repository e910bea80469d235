package work

import (
	"errors"
	"iter"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// Batches cuts a list, ordered by partition, into pieces of at most that many elements of one
// partition.
func Batches[T any](list []T, most int, part func(T) int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(list) > 0 {
			n := 1
			for n < min(len(list), most) && part(list[n]) == part(list[0]) {
				n++
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// Batch is up to ledger.BatchMax claims of one partition, on their way to Redis or back.
type Batch struct {
	Part    int
	Jobs    []*Job
	Claims  []claim.Claim
	StartBy []int64 // for a claim of a pending run: when it must start at the latest, ms; 0: no limit
	Created time.Time

	// How the batch was sent.
	FirstSent  time.Time     // just before the first request; zero when none was sent
	LastSent   time.Time     // just before the request that was answered
	Suspended  time.Duration // how long the machine had been suspended at the first request
	Epoch      string        // id of the epoch of the last request
	Unanswered bool          // some request was not answered
	Repeated   bool          // it was sent more than once, or had to wait
	SlotsFreed bool          // its claims hold no slots, because they were in doubt; the runs that they are granted take slots again

	Answers []claim.Answer
	Started []bool // for each claim: it was granted, and its run has begun here or is being handed back
	Err     error
}

// ErrNotSent is the error of a batch that was not sent while its ticks were fresh: Redis was
// unreachable, grants were held, other batches came first, or the node drained. Nothing was carried
// out.
var ErrNotSent = errors.New("claim not sent while it was fresh")

// Expired returns the claim of a pending run as it is to be sent now. After until (ms, 0 for no
// limit) the run is to be recorded as missed.
func Expired(c claim.Claim, until, now int64) claim.Claim {
	if until != 0 && now > until {
		c.Drop = ledger.ReasonStartWithin
	}
	return c
}
