// Package cronlock makes a cron.Cron of robfig/cron/v3 once-only over machines: each tick of each entry runs on one
// machine, whatever the machines' clocks show.
//
//	c := cron.New(cronlock.Once("billing", locker, client, cronlock.Config{}))
//
// # Not promised
//
// The program keeps its cron. For the missing features, use package scheduler.
//
//   - A tick whose machine dies is not run again. Neither is a tick that no machine could claim, because Redis was
//     unreachable, all machines were stopped, or the entry's last run still went on.
//   - Nothing is caught up, retried or recorded: there is no history. A tick that did not run is in
//     the machine's log.
//   - The later tick wins. A machine whose clock is ahead claims first, and an earlier tick is refused from then on. When
//     that machine dies, an entry may have no ticks for as long as the clock was ahead, at most Config.MaxSkew.
//   - A Redis that loses its data, fails over to a replica without the last writes, or has its clock set ahead and back,
//     may let one tick run twice. The tokens of the two runs differ, so a guard (package fence) can refuse the earlier.
//   - A process that is stopped for a whole interval may lose the ticks of that interval.
//
// # Promised
//
// While Redis keeps its data, no tick of an entry is claimed twice, and of two claims the later tick has the larger
// token. At most one lease of an entry is held at a time, as package locking promises.
//
// # How a tick is claimed
//
// A lock alone is not enough: a machine whose clock is behind comes when the lock has been released, and runs the tick
// again. So each tick is claimed by the entry's name and the instant that the schedule gives, never by the time on the
// machine's clock. robfig/cron does not hand the instant to the job, but sets it as Entry.Prev right after it has
// started the job's goroutine and before it answers Cron.Entries, so the wrapper reads it there first of all.
//
//	cron fires ──► Entry.Prev ──► look at the mark ──► lock of the entry ──► claim ──► job ──► release
//	                                │ claimed before     │ held               │ claimed before, or the lease is lost
//	                                └───────────────────┴────────────────────┴─► the tick does not run here
//
// The mark is one Redis key for each entry: the largest claimed tick, with the token of its lease. A script compares and
// writes it in one step: a later tick replaces it, an equal or earlier one is refused. Only that claim decides; the lock
// adds the token, the context that ends, and one run of an entry at a time.
//
// Redis' clock bounds all claims: a tick more than Config.MaxSkew away from it is refused, with an error in the log. The
// mark lives longer than any machine can still claim the tick, so it may expire, and nothing grows.
//
// # Entries
//
// All machines of a group have the same entries with the same schedules, in the same time zone
// (cron.WithLocation). An entry's name is the name of its function
// ("example.com/shop/jobs.Report"), or the argument of Named. A function literal, a method or a
// struct has no name that would be the same on all machines, so it is refused without Named.
//
// The ticks of "@every 5m", which each machine counts from its own start, are rounded down to a multiple of the interval
// for the claim: one run in each interval.
//
// # Keys
//
//	{ns:cron:group:name}    the mark of an entry: "tick token", the tick in Unix milliseconds
//
// and the keys of the lock cron:group:name, wherever the locker has its locks. A tick costs the
// machine that runs it four calls, and each other machine one or two.
package cronlock
