// Package gocronlock has the Elector and the Locker of gocron v2 (github.com/go-co-op/gocron/v2) over a locking.Locker. It is
// a module of its own, so that other programs do not get gocron.
//
//	elector, err := gocronlock.NewElector("billing", locker, gocronlock.ElectorConfig{})
//	go elector.Run(ctx)
//	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
//
// # Which one
//
// The Elector, unless one machine cannot do all the work: one leader runs every job. gocron gives a
// Locker the name of a job and not the instant of its tick, so a Locker has no record of the ticks
// that have run. To claim each tick by its instant, use package cronlock with robfig/cron, or
// package scheduler.
//
// # Elector
//
// The machine whose Run holds the lock is the leader, until the local deadline of its lease at the
// latest: IsLeader of a leader that is cut off fails before another machine can be the leader. When
// Run ends it releases the lock, and the first waiter becomes the leader at once. When the leader
// dies, the change takes the TTL, 15 s by default.
//
// Not promised: when the leader changes, a tick runs twice if the clock of the new leader is behind
// by more than the change took, and not at all if there was no leader. gocron checks for the leader
// only when a job starts: a job that runs on when the leader has lost its lease must look at Lease
// itself.
//
// # Locker
//
// A job runs on the machine that has the lock named after it. The lock is held while the job runs,
// and for the time called atLeast at least, counted from when it was acquired: a machine whose
// clock is behind by less finds it held, and skips the tick. A machine that is behind by more runs
// the tick again.
//
// Not promised: that a tick runs once. atLeast must be longer than the largest difference of clocks and shorter than the
// job's interval, or ticks are skipped. Jobs with an interval (gocron.DurationJob) start on each machine at other instants:
// use gocron.WithStartAt, or gocron.CronJob. gocron gives the job neither a token nor a context that ends with the lock.
//
// By default gocron names a job after its function. Name each one with gocron.WithName: two function literals, or two
// programs in one group, might share a name, and then one of them does not run.
package gocronlock
