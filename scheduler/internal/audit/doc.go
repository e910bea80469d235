// Package audit is the judge of the promises P1 to P4 and P6 of docs/guarantees.md. It is a pure
// function from evidence to findings, without a client, a goroutine or a clock.
//
// `escapement ledger verify`, schedtest, the random simulations and cmd/torture call it: no other
// code judges the promises.
//
// # The evidence
//
//	books      the ledger's records of each job: its entry, its definition, rows, runs in flight
//	writes     lines that the jobs' functions wrote outside when they started and ended, in the order of writing
//	schedules  which ticks were due
//	grants     grants as seen on the wire, and the nodes at work at that instant (simulations only)
//	the rest   operators' actions (pauses, triggers, reruns, rewinds), and disturbances: when, and of which nodes
//
// Books judges the books alone, which is all the evidence that production has. Check compares all
// evidence.
//
// # The checks
//
//	ticks      each due tick started once for each attempt, in time, or the books have one reason why it did not
//	reasons    each recorded reason is true: a run was going (overlap), the tick was too late, the job was paused
//	policies   no more tries and attempts than the job may have; nothing starts that the policies or a pause forbid
//	followers  a job with `after` has one answer for each tick that its upstreams have ended
//	order      tokens only grow; runs of one job do not overlap, unless the job allows it; a context ends before the
//	           lease is granted to another run
//	compare    writes and books have the same runs
//	books      the recorded steps of the cursor close without gap, and each is the step that the schedule demands
//
// # When a start is late
//
// A tick may wait while another run of its job is going. A start is late when the job stood idle
// for more than Case.Within since the tick was due, and nothing disturbed the cluster meanwhile. A
// disturbance acts from its beginning to Case.Settle after its end.
//
// # Excused faults
//
// After Redis has lost acknowledged writes, a tick may run twice or be without a record. Around a
// Disturbance that Loses, such faults are counted as excused. Tokens still grow.
package audit
