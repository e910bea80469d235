// Package scheduler is the node: it decides which ticks to claim, runs what it was granted and
// records how it ended.
//
//	err := scheduler.Run(ctx, "redis://localhost:6379", jobs.Job{Name: "settle-orders", Schedule: "*/5 * * * *", Func: settle})
//
// Run is a whole program. With settings it is
//
//	client, err := scheduler.Connect("redis://localhost:6379")
//	reg := jobs.NewRegistry()
//	reg.MustAdd(jobs.Job{Name: "settle-orders", Schedule: "*/5 * * * *", Func: settle})
//	node, err := scheduler.New(client, reg, scheduler.Config{Name: "a1"})
//	err = node.Run(ctx) // blocks; on ctx's end it drains, hands over, returns nil
//
// [Node.Add] and [Node.Remove] change the jobs of a running node.
//
// A [Client] looks into a namespace and operates it from any process: it triggers a job and waits for its outcome, lists,
// pauses, cancels.
//
// # A tick's way
//
//	agenda (queue of candidates: ticks, pending runs, shards; by Redis' clock)
//	   │ due together: one batch per partition; each claim takes a slot
//	   ▼
//	plan: which ticks will not run, and why; which one runs; where the cursor goes
//	   │
//	   ▼
//	lane ── claim ──► ledger: granted(token) · opened · skipped · passed · moved · held · early · superseded · ...
//	   │ granted
//	   ▼
//	runner ── lease kept alive ── local deadline ──► context ends, cause locking.ErrLeaseLost
//	   │ the function returned, for the last try
//	   ▼
//	lane ── settle, in batches ──► outcome recorded; the slot is free again
//
// The owner of a job, by rendezvous hashing, claims shortly before the tick and starts the run when
// it is due; the others do nothing. A sweep on every node looks for what is overdue by more than Grace and lets nodes contend for it, in
// the order of their rank. Who owns what is a hint; the claim is the truth, so a node that knows
// less than another can cost a claim, never a second run.
//
// # Time
//
// A node fires by Redis' clock as it estimates it: the last good sample and its own monotonic
// clock. Its wall clock decides nothing but whether a large step of Redis' clock is believed.
// After a step, or another run of the server, leases are not reaped until the clock has run
// steadily for their ttl.
//
// # Pending runs
//
// Runs by hand, attempts after a crash and runs that follow another job's tick have no cursor. They lie
// in pending, where any node's sweep finds them; each is claimed by its id, like a tick by its cursor.
// What ended at a job that others follow lies in an outbox, and the sweep brings it to them.
//
// # What may fail
//
//   - A claim's answer is lost: asked again with the same run id, it gives the same grant. After
//     MaxSkew only the question is repeated, and a no is final when no copy of the claim can be
//     granted any more.
//   - Redis is away: runs go on until their local deadline; reports are repeated; nothing is
//     claimed. Afterwards, if the oldest tick without an answer is late by no more than 10 s, all of
//     them run in order, each when the one before has ended; else catch_up decides.
//   - A master of a Cluster is away: each master has a lane of its own, and a claim in doubt holds no
//     slot, so jobs of the other masters go on. A run whose grant is heard of when they have all slots is handed
//     back to pending.
//   - The node dies: ticks it had not claimed are taken by the others' sweep; its runs are
//     reaped when their leases have lapsed, and on_crash decides whether an attempt follows.
//   - The node is stopped and resumed: the deadline has passed, the context ends at once, the
//     settle is answered lost.
//   - The node must leave a job, because a newer definition is stored: it says so once, and
//     comes back when no living node holds that definition any more.
package scheduler
