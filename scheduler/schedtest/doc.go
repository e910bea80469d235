// Package schedtest runs a whole cluster in one process, in virtual time, puts it under faults and
// compares the results with the promises of docs/guarantees.md. Put your own jobs into it:
//
//	func TestMyJobsSurvive(t *testing.T) {
//		schedtest.Run(t, schedtest.Plan{
//			Seed: 1,
//			Jobs: myJobs(), // the jobs that you register in production: here a job that is due each minute
//			Heal: 3 * time.Minute, For: 5 * time.Minute,
//			Faults: []schedtest.Fault{
//				{Do: schedtest.Crash, At: schedtest.AfterClaim, For: 2 * time.Second},
//				{Do: schedtest.Pause, At: schedtest.AfterStart, Node: "a", Nth: 2, For: 20 * time.Second},
//			},
//		})
//	}
//
// # Real and simulated parts
//
// Nodes, scripts, the Redis client and your functions are the shipping ones. Redis is miniredis,
// which runs the shipping Lua. The network, the clocks and the passing of time are simulated: the
// cluster lives in a testing/synctest bubble, so a minute of it takes a fraction of a second.
//
//	nodes a, b, c ──► client ──► conn ──┐                       ┌──► Redis (miniredis)
//	                                     ├── wire: one delivery ──┤
//	job's function ──► start, end ──────┘    at a time           └──► sink, with a guard
//
// The seed decides how long each message takes. The wire delivers one message after another, each
// at an instant at which nothing else happens, and ids are counted. So a plan gives the same
// history, byte for byte, on every machine, with or without the race detector.
//
// # Faults
//
// A Fault strikes at a time, or better at a named Point in the life of a tick: faults at random
// instants hit nothing. Each Action documents its effect. Two things a bubble cannot do: a paused
// process's timers run on (their effects stay inside until the process goes on), and the clocks of
// two nodes do not drift apart (their wall clocks can be set wrong).
//
// # The verdict
//
// Around each call of a job's function a line is written to an outside sink, which has a guard that
// refuses stale tokens. Package scheduler/internal/audit compares these lines, the grants seen on
// the wire and the ledger's books with the schedules and every policy of a job. The simulation adds
// that nothing is left behind when all nodes have stopped in peace: no key, connection or goroutine
// (the bubble does not end before all goroutines have). Settings that cannot be judged, such as a
// job's Limit, are refused by name before the simulation plays.
//
// A Scenario is a timetable: the ticks, faults and rows of history, as text.
//
// Without Heal, faults go on to the end (safety: nothing wrong happens). With Heal they end and
// their damage is mended (liveness: from then on every tick must run, in time).
package schedtest
