// Package explore walks every state that a small world of the ledger's protocol can reach, and
// holds each against the promises of docs/guarantees.md.
//
// It is a model and not the code: one job, two nodes, three ticks, time in whole units of
// max_skew. What the scripts and the nodes decide by, it decides by too; what they store and how,
// it leaves out. It answers what no simulation can: that nothing was left untried within these bounds,
// and what each rule is there for.
//
// # The world
//
// A [State] is the ledger (cursor, definition, open tick with its shards, token), two
// nodes, up to two commands under way, and how much may still go wrong. A step is one of
//
//	time passes                        clock.go
//	Redis' clock is set                clock.go
//	a claim, of a tick, shard, pending claim.go
//	a run that was granted ahead starts node.go
//	renew, settle, reap, unclaim       lease.go
//	a definition is replaced; where
//	the schedule is the same the
//	cursor stays                       define.go
//	crash, pause, restart, failover    faults.go
//	a request is delayed, dropped; a
//	reply is lost, and asked for again send.go
//
// [Explore] takes all of them, from every state, breadth first; so the first broken promise comes with
// a shortest way to it. States that differ only in the names of runs and of equal nodes are one
// (canon.go). Then it walks back from the states in which every tick has its answer: a state from
// which none of them can be reached is stuck.
//
// # The rules
//
// Each rule of the protocol is a [Guard] that a [Scenario] may switch off. With all on, no scenario
// breaks a promise. With any one off, some scenario does: a rule that nothing needs would be found,
// and so would a check that cannot fail.
//
// The model is less careful than a node where a script must not depend on its care: it asks to
// reap leases that have not lapsed, and replaces definitions without knowing what was accounted for.
//
// # More of it
//
// A new command is a [Kind], a function that is its script (with the ledger, it decides; it breaks no
// promise by itself, but calls grant, account, checkStep and closeTick, which check), a line in
// world.script, one in world.hear for what the sender does with the answer, and one in Command.wish for
// its words. A node's wish to send it goes into world.live. Pending
// triggers would be a second list beside Ledger.Shards, dependants a second job with an outbox
// between the two. A new rule is a Guard, asked with world.on where it decides, and a line in the tests'
// table. A field of State must be small and settle down: what only grows makes the world infinite, so
// the tidy functions cut it where it no longer matters. A scenario above a few hundred thousand states
// is too large; take a fault away before a rule.
//
// # What it leaves out
//
//   - After a failover that lost a write only the order of tokens is promised, and it is
//     checked for one failover.
//   - Two steps of Redis' clock that cancel out before a node has looked at it in between are beyond
//     every rule; nodes look between two steps.
//   - A claim that was under way while Redis' clock stepped back by as much may be granted to a node
//     that has given up: P6 is not checked where the clock steps.
//   - Cancelling, replacing, queueing and parallel runs, triggers and dependants.
//   - Promotions and moves (P7): TestMoves and the tests of promotions kill the command amid each step.
package explore
