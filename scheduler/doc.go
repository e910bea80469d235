// Package scheduler has the node: it decides which ticks to claim, carries out the granted runs and
// records their outcomes.
//
//	err := scheduler.Run(ctx, "redis://localhost:6379", jobs.Job{Name: "settle-orders", Schedule: "*/5 * * * *", Func: settle})
//
// Run is a whole program. With settings it is
//
//	client, err := scheduler.Connect("redis://localhost:6379")
//	reg := jobs.NewRegistry()
//	reg.MustAdd(jobs.Job{Name: "settle-orders", Schedule: "*/5 * * * *", Func: settle})
//	node, err := scheduler.New(client, reg, scheduler.Config{Name: "a1"})
//	err = node.Run(ctx) // blocks; when ctx ends it drains, hands over, returns nil
//
// [Node.Add], [Node.Remove] and [Node.Change] change the jobs of a running node.
//
// Package ops has the client, which reads and operates a namespace from any process.
//
// # The path of a tick
//
//	agenda (queue of candidates: ticks, pending runs, shards; by Redis' clock)
//	   │ due together: one batch for each partition; each claim takes a slot
//	   ▼
//	plan: which ticks will not run, and why; which one runs; where the cursor goes
//	   │
//	   ▼
//	lane ── claim ──► ledger: granted(token) · opened · skipped · passed · stale · held · early · superseded · ...
//	   │ granted
//	   ▼
//	runner ── lease kept alive ── local deadline ──► context ends, cause locking.ErrLeaseLost
//	   │ the last try has returned
//	   ▼
//	lane ── settle, in batches ──► outcome recorded; the slot is free again
//
// The owner of a job, chosen by rendezvous hashing, claims shortly before the tick and starts the
// run when the tick is due; the other nodes do nothing. A sweep on every node looks for ticks that
// are late by more than Grace, and the nodes contend for them in the order of their rank. Ownership
// is a hint and the claim decides, so a node with an outdated view can cost a claim, never a second
// run.
//
// # Time
//
// A node acts by its estimate of Redis' clock: the last good sample and its own monotonic clock.
// Its wall clock only decides whether a large step of Redis' clock is believed. After a step, or a
// restart of the server, leases are not reaped until the clock has run steadily for their ttl.
//
// # Pending runs
//
// Runs by hand, attempts after a crash and runs that follow another job's tick have no cursor. They
// are stored as pending, where any node's sweep finds them, and are claimed by id. The end of a
// tick that other jobs follow is an event in the outbox, which the sweep delivers.
//
// # Failures
//
//   - A claim's answer is lost: the claim is repeated with the same run id and gets the same grant.
//     After MaxSkew the node only reads whether the run was granted. A no is final when no copy of
//     the claim can be granted any more.
//   - Redis is unreachable: runs go on until their local deadlines, reports are repeated, nothing is
//     claimed. Afterwards, if the oldest unanswered tick is late by at most 10 s, all of them run in
//     order; otherwise catch_up decides.
//   - A master of a Cluster is unreachable: each master has its own lane, and a claim in doubt holds
//     no slot, so jobs of the other masters go on. A run is handed back if its grant arrives when
//     other runs hold all slots.
//   - The node dies: the sweeps of other nodes claim its ticks. Its runs are reaped when their leases
//     have lapsed, and on_crash decides whether another attempt follows.
//   - The node is stopped and resumed: the deadline has passed, the context ends at once, and the
//     report is answered lost.
//   - A newer definition of a job is stored: the node logs it once and stops claiming the job. It
//     claims the job again when no living node holds the newer definition any more.
package scheduler
