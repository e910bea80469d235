// Package verify judges, after the fact, whether a cluster kept its promises. It is data in and
// findings out: no client, no goroutine, no clock, and nothing of the scheduler but the shape of
// its records.
//
// It holds three witnesses against each other:
//
//	oracle   which ticks were due. Schedules are read and walked by code of this package, second
//	         by second; jobs.ParseSchedule has no part in it
//	sink     what the jobs wrote when they ran, in the order of writing, by the sink's clock
//	books    what the ledger recorded: rows, cursors, leases
//
// # The checks
//
// By identity: each due tick ran once and in time, or the books say once why it did not, and that
// reason is true.
//
// Blindly: identities are forgotten. Each due tick is a window in time, each start a point, and a
// point uses up a window that it lies in (as in Chronos, a checker of job schedulers). A point
// that is left over is a surplus run, however well its line is made up; and the windows left over
// must be as many as the ticks that the books count as not run.
//
// Beside these: tokens only grow, runs of one job do not overlap, and sink and books tell of the
// same runs.
//
// # When a start is late
//
// A tick may wait while another run of its job is going. It is late when the job stood idle for more
// than Case.Within since the tick was due, and nothing disturbed the cluster meanwhile. A
// disturbance acts from its beginning to Case.Settle after its end. When the books are read, a tick
// may still be unanswered, and a run in flight, only if the cluster was not left alone for as long since.
//
// # What is excused
//
// After Redis has lost acknowledged writes, a tick may run twice or be without a record. Around
// a Disturbance that Loses, such faults are counted instead of found. A run that was pending may then
// be granted twice under one id, each time with a token of its own. Tokens grow all the same.
//
// # What is not looked at
//
// Reruns and dependants: a second start of a tick, or of a shard of it, is a double, whatever its attempt. The order of different jobs is nobody's promise.
package verify
