// Package model is the protocol of package ledger as a small machine: what claims, renewals, ends,
// lapsed leases, hand-backs and definitions do, once, in plain Go. The machine is held against two
// things.
//
//	the scripts    Random calls go to a redis-server, to an embedded one and to a [Ledger]. Replies and everything stored are
//	               the same, to the letter (TestTrace of package ledger).
//	the promises   [Explore] walks every state that a small world of one Ledger and two nodes can reach, and holds each
//	               against docs/guarantees.md. It answers two questions that no simulation can: is anything left untried within
//	               these bounds, and which promise needs which rule?
//
// # The small world
//
// One job, two nodes, three ticks, time in whole units of max_skew. A [State] has the ledger's
// [Record] in small numbers, the nodes, up to two commands under way, and how much may still go
// wrong. For each call load makes a Ledger of the Record, the Ledger answers, check holds the
// change against the promises, and store makes a Record again. A step is one of
//
//	time passes; Redis' clock is set; crash, pause, restart, failover    steps.go
//	a claim of a tick or a pending run, renew, reap, settle, unclaim     node.go, load.go
//	a run that was granted ahead starts                                  node.go
//	a definition is replaced                                             deploy.go
//	a request is delayed or dropped; a reply is lost, and the node
//	sends the command again                                              send.go
//
// Explore takes all of them, from every state, breadth first; so the first broken promise comes
// with a shortest way to it. States that differ only in the names of runs and of equal nodes are
// one (canon.go). Then it walks back from the states in which every tick has its answer: a state
// from which none of them can be reached is stuck.
//
// # The rules
//
// Each rule of the protocol is a [Guard] that a [Scenario] may switch off. With all on, no scenario
// breaks a promise. With any one off, some scenario does: a rule that nothing needs would be found,
// and so would a check that cannot fail.
//
// A node of the model is less careful than a real one where a script must not depend on its care:
// it sends reaps for leases that have not lapsed, and replaces definitions without the last instant
// accounted for.
//
// # To add to it
//
// A new call is a method of Ledger, a line in the interface Model of the ledger's trace_test.go and
// one in its world. To explore the call too: a [Kind], a line in world.call, one in
// world.handleReply, one in Command.words, and the node's sending of it in world.live. A new rule
// is a Guard, read with on where the rule decides, and a line in the tests' table. A field of State
// must be small and settle down: what only grows makes the world infinite, so the tidy functions
// cut it where it no longer matters. A scenario above half a million states is too large; take a
// fault away before a rule.
//
// # What it leaves out
//
//   - Of the scripts: pauses, followers, backfills, gates, promotions, moves, what nodes report after a failover, operators' calls.
//     TestTraceOfAllCalls compares the two servers in those.
//   - In the exploration also: overlap queue, replace and allow, and triggers.
//   - After a failover that lost a write only the order of tokens is promised, and it is
//     checked for one failover.
//   - Two steps of Redis' clock that cancel out before a node has looked at it in between are beyond
//     every rule; nodes look between two steps.
//   - A reap that was under way while its run was renewed, and that shortens a lease which ends
//     too late for this clock before it is refused: only reaps sent later do so.
//   - A claim that was under way while Redis' clock stepped back by as much may be granted to a node
//     that has given up: P6 is not checked where the clock steps.
package model
