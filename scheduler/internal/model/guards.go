package model

// Guard is one rule of the protocol that can be switched off, to see what it is for.
type Guard int8

// The guards. Each names the script or the part of the node that keeps it.
const (
	NoGuard           Guard = iota
	CursorCompare           // claim: the cursor stands where the caller sees it
	DigestCompare           // claim: the caller's definition is the stored one
	NotEarly                // claim: the tick is due by Redis' clock, or nearly
	HeldNotSkipped          // claim: a tick that was due before the holder's grant waits and is not skipped
	SameAsker               // claim: a grant is repeated to the node that was granted only
	AttemptRule             // claim: a rerun is granted only while it is pending under the id it has now
	PinnedShards            // claim: an open tick keeps the shard count that it began with
	BegunWhole              // claim: a tick that has begun as one run goes on as one
	ClockInClaim            // claim: the caller's idea of Redis' time is right
	ClockInReap             // reap: likewise
	ClockInDefine           // define: likewise
	SteadyClock             // sweep: Redis' clock ran steadily for the lease's ttl
	BeatInReap              // reap: the run was not renewed since it was seen
	UntilInReap             // reap: the lease has lapsed
	OwnerInSettle           // settle: the lease is still this run's
	FreshIDInUnclaim        // unclaim: the pending run gets a new id
	DeadlineFromFirst       // node: the deadline counts from the first copy of the claim
	DeadlineMargin          // node: the deadline lies max_skew before the lease's end
	StartWhenDue            // node: a run that was granted ahead starts when its tick is due
	NoIsFinalLater          // node: with a copy unanswered, a no counts only once no copy can be granted any more
	CursorInDefine          // define: the cursor stands where the caller sees it
	DigestInDefine          // define: the replaced definition is the one the caller saw
	AfterNowInDefine        // define: the new schedule begins after now
	AllDueInDefine          // define: no tick of the old schedule has come due that the caller did not count
	AfterLastInDefine       // define: and after the latest instant accounted for
	SameSchedule            // node: the schedule is called the same only where it is
	TokenGuard              // token rule: a jump after a new id
	guardCount
)

var guardNames = [guardCount]string{
	"none", "cursor compare", "digest compare", "not early", "held, not skipped", "same asker", "attempt rule", "pinned shards", "begun whole",
	"clock check in claim", "clock check in reap", "clock check in define", "steady clock", "beat in reap", "until in reap",
	"owner check in settle", "fresh id in unclaim", "deadline from first request", "deadline margin", "start when due", "no is final later",
	"cursor compare in define", "old digest compare in define", "after now in define", "all due ticks in define", "after last in define",
	"same schedule", "token guard",
}

// String returns the guard's name.
func (g Guard) String() string { return guardNames[g] }

// Guards is every guard.
func Guards() []Guard {
	all := make([]Guard, 0, guardCount-1)
	for g := NoGuard + 1; g < guardCount; g++ {
		all = append(all, g)
	}
	return all
}
