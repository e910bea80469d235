// Package audit is the judge of the promises P1 to P4 and P6 of docs/guarantees.md. It is a pure function: evidence in,
// findings out. It has no client, no goroutine and no clock.
//
// Everything that has to say whether a history keeps the promises calls it: `escapement ledger verify`, schedtest, the
// random simulations and cmd/torture.
//
// # The evidence
//
//	books      what the ledger recorded of each job: its entry, its definition, rows, runs in flight
//	writes     what the jobs' functions wrote outside when they started and ended, in the order of writing
//	schedules  which ticks were due
//	grants     what was granted, seen on the wire, and who was at work at that instant (simulations only)
//	the rest   what people did (pauses, triggers, reruns, rewinds), and when something was wrong, and with whom
//
// Books judges the books alone, which is all that there is in production. Check holds all of the evidence against each
// other.
//
// # The checks
//
//	ticks      each due tick started once for each attempt, in time, or the books say once why it did not
//	reasons    each recorded reason is true: something was going on (overlap), the tick was too late, the job was paused
//	policies   no more tries and attempts than the job may have; nothing starts that the policies or a pause forbid
//	followers  a job with `after` has one answer for each tick that the jobs which it follows have ended
//	order      tokens only grow; runs of one job do not overlap, unless the job allows it; a context ends before the
//	           lease is granted to somebody else
//	compare    writes and books tell of the same runs
//	books      the recorded steps of the cursor close without gap, and each is what the schedule demands
//
// # When a start is late
//
// A tick may wait while another run of its job is going. It is late when the job stood idle for more than Case.Within
// since the tick was due, and nothing disturbed the cluster meanwhile. A disturbance acts from its beginning to
// Case.Settle after its end.
//
// # What is excused
//
// After Redis has lost acknowledged writes, a tick may run twice or be without a record. Around a Disturbance that
// Loses, such faults are counted as excused. Tokens grow all the same.
package audit
