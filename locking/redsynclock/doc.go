// Package redsynclock has the Mutex of redsync v4 over a locking.Locker. The methods have the names, arguments and results
// of redsync, so a program changes one import and the constructor:
//
//	import redsync "github.com/escapement/escapement/locking/redsynclock"
//
//	rs := redsync.New(redislock.New(client, redislock.Config{})) // was: redsync.New(pool)
//	mutex := rs.NewMutex("order:42", redsync.WithExpiry(10*time.Second))
//	if err := mutex.Lock(); err != nil { ... }
//	defer mutex.Unlock()
//
// New over a locker of package redlock is redsync over N independent masters.
//
// # Different from redsync
//
//   - A program with redsync and one with this package do not exclude each other: the keys in Redis differ. Stop the last
//     one with redsync before the first one with this package starts.
//   - Until is the local deadline: WithExpiry, less the locker's margin (1 s by default) and 1 %. With the default expiry
//     of 8 s that is after 6.92 s. An expiry below three margins is refused by Lock.
//   - Lock waits in the lock's queue, where the store has one, without polling. WithTries and
//     WithRetryDelay give the longest wait: tries less one, times the delay. By default the wait is
//     31 times 150 ms.
//   - The context of LockContext bounds only the call, as with redsync. The context of
//     UnlockContext bounds nothing: an unlock takes three calls to the store at most, 3.2 s.
//   - Extend of a lost lock returns ErrExtendFailed, and Unlock ErrLockAlreadyExpired, whether the
//     lock has another holder or is free. Both errors wrap locking.ErrLost.
//   - A Mutex may be used from many goroutines.
//
// # New
//
//   - Context ends when the lock does, at the local deadline at the latest: work under it.
//   - Token is the fencing token: send it with each write. Of two holders of a lock, the later has the larger token.
//   - WithRenewal renews the lock until Unlock. Without it the lock ends after its expiry, as with redsync, unless it is
//     extended.
//
// # Left out
//
// WithValue and WithGenValueFunc, because the owner's value is the library's own. WithSetNXOnExtend, because a lock that was
// lost may have had another holder. WithRetryDelayFunc, WithDriftFactor, WithTimeoutFactor, WithFailFast and
// WithShufflePools: the locker decides these. A program that uses one does not compile; remove the option.
package redsynclock
