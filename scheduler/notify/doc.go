// Package notify tells people about jobs that are not well: once for the whole cluster, and again when they are well.
//
// Every node that has targets runs a [Notifier]. One at a time works: the one that holds the lock "@notifier" of the namespace. A look, every
// few seconds, compares what the ledger says of jobs with what was told of them, and decides which events have happened:
//
//	job   ──failed, abandoned, missed──► told ──a run succeeds──► recovered
//	      ──late, overdue─────────────► told ──the tick is answered, or the job paused──► recovered
//	      ──stalled───────────────────► told ──a run succeeds after that──► recovered
//	      ──no success within expect──► told ──a run succeeds──► recovered
//
// An event is told once until its job has recovered from it. What was told is a small record in Redis for each job that is not well. The
// number of runs that have ended in each way is part of an entry in the ledger, so that a failure between two looks is noticed whatever
// came after it.
//
// # What happens when a node dies
//
// A look writes, in one step, the records of jobs and the events that wait for each target. The write is fenced by the token of the lock:
// a notifier that was followed by another one writes nothing. A message is stored with its id before it is sent, and removed after. So
//
//   - a node that dies before the write has told nothing: the next one finds the same events;
//   - a node that dies after the write and before the message was sent leaves it to the next one, which sends it;
//   - a node that dies after the message was sent and before it was removed leaves it too: the next one sends it again, with the same id.
//
// So a message is sent at least once, and normally once. Its id is in the header Idempotency-Key, for receivers that look at it.
//
// Who loses what Redis had acknowledged (a failover) may be told again. A namespace that has moved begins anew: what is not well is told once
// more there.
package notify
