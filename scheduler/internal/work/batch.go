package work

import (
	"errors"
	"iter"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Batches cuts a list, in the order of partitions, into pieces of one partition each, of ledger.BatchMax at most.
func Batches[T any](list []T, part func(T) int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(list) > 0 {
			n := 1
			for n < len(list) && n < ledger.BatchMax && part(list[n]) == part(list[0]) {
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
	Part   int
	Jobs   []*Job
	Claims []ledger.Claim
	Until  []int64 // of each claim of a pending run, when it comes too late, ms; 0: never
	Made   time.Time

	// How it was asked for.
	Asked  time.Time     // before the first request was sent; zero when none was
	Sent   time.Time     // before the request that was answered was sent
	Slept  time.Duration // the machine's suspended time at that instant
	Server string        // that was asked last, its id
	// Copied is when the last request was sent that can be granted, and Unanswered says that one was not answered.
	Copied     time.Time
	Unanswered bool
	Again      bool // it was asked more than once, or waited until it could be
	Freed      bool // its claims hold no slots, because they were in doubt; what they were granted does

	Answers []ledger.Answer
	Begun   []bool // of each claim, whether it was granted and its run is here, or is being handed back
	Err     error
}

// ErrNotSent is a batch's error when it could not be sent while its ticks were fresh, because Redis was away, grants were
// held or others stood before it, or before the node drained: nothing was carried out.
var ErrNotSent = errors.New("claim not sent while it was fresh")

// Ask turns claims of ticks into mere questions: from no cursor nothing is granted, but a grant
// made before is found by its run id. Pending runs are asked for as they are, and may have become too late.
func (b *Batch) Ask(now int64) {
	for i := range b.Claims {
		b.Claims[i].From = 0
		if b.Claims[i].Pending {
			b.Claims[i] = Expired(b.Claims[i], b.Until[i], now)
		}
	}
}

// Unsure says whether a question was answered no for a tick, which another copy may still turn
// into a yes.
func (b *Batch) Unsure() bool {
	for i, a := range b.Answers {
		if !b.Claims[i].Pending && (a.Verdict == ledger.Stale || a.Verdict == ledger.Closed) {
			return true
		}
	}
	return false
}

// Expired is a claim for a pending run as it is to be asked now: to be recorded as missed when that is after until, ms, which is not 0.
func Expired(c ledger.Claim, until, now int64) ledger.Claim {
	if until != 0 && now > until {
		c.Drop = ledger.ReasonStartWithin
	}
	return c
}
