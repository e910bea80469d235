// Package notify notifies people of jobs that are not well: once for the whole cluster, and again
// when they are well.
//
// Every node that has targets runs a [Notifier]. One at a time works: the holder of the lock
// "@notifier" of the namespace. A look, every few seconds, compares the ledger with the problems
// already notified, and derives the events:
//
//	job   ──failed, abandoned, missed──► notified ──a run succeeds──► recovered
//	      ──late, overdue─────────────► notified ──the tick is answered, or the job paused──► recovered
//	      ──stalled───────────────────► notified ──a run succeeds after that──► recovered
//	      ──no success within expect──► notified ──a run succeeds──► recovered
//
// A problem is notified once until its job has recovered from it. Redis has a small record for each
// job with notified problems. The ledger's entry of a job counts its runs by outcome, so a failure
// between two looks is noticed whatever came after it.
//
// # When a node dies
//
// A look writes, in one step, the records of jobs and the events that wait for each target. The
// write is fenced by the token of the lock: a notifier that has lost the lock to another one writes
// nothing. A message is stored with its id before it is sent, and removed after. So
//
//   - a node that dies before the write has notified nothing: the next notifier finds the same events;
//   - a node that dies after the write and before the message was sent leaves it to the next one, which sends it;
//   - a node that dies after the message was sent and before it was removed leaves it too: the next one sends it
//     again, with the same id.
//
// So a message is sent at least once, and normally once. Its id is in the header Idempotency-Key,
// for receivers that look at it.
//
// After a failover that lost acknowledged writes, an event may be notified again. In a moved
// namespace notification begins anew: every problem is notified once more there.
package notify
