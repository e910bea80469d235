// Package move moves a namespace to another Redis: standalone, with Sentinels or a Cluster, with as many partitions or others.
//
// # The steps
//
//	          plan   changes nothing; says what there is and what is in the way
//	1  seal   reserves the place at the other side, then closes this one: nothing is granted, taken in or changed any
//	          more; what runs ends, is cancelled, or is reaped
//	2  copy   brings everything over, and compares
//	3  open   opens the other side, one partition after another, and notes here that the namespace has moved
//	   abort  before open: burns the place at the other side, and then opens this one again
//
// Each may be killed at any point and run again, and answers the same when it is run once too often. One that comes too
// early, or too late, is refused with the one that is next. After open the way back is a move back.
//
//	from   (open) ──► sealing ──► sealed ─────────────────────────► moved
//	           ▲─────────┴──────────┘ abort                          ▲
//	to     (nothing) ──► filling ───────► opening ──► gates open ──► open
//	                        └──► burnt
//
// # Why no tick runs twice, and none is lost
//
// Every write carries the id of the move and is one script that looks first whether the move is, right there, in the state
// in which the write belongs. The ids are ordered in time, and a gate or a control record that a move has had takes
// nothing from that move, or from one before it, once it was undone: a command that comes late, a minute or a month, finds
// its state gone. Of the two Redis at most one is open, because open comes after sealed, and abort unseals only
// after it has burnt the id at the other side, by the same compare-and-set by which open would begin. If the other side
// cannot be reached, abort is refused.
//
// A copy is taken when nothing runs, and nothing can be cancelled, so it is of one moment; open compares both sides
// once more. Every part of a copy has a number and is written once, in order, so one that is repeated by the network
// doubles nothing. Tokens go over without the identity of the server that gave them: the first token
// of each job at the other side leaps by the guard of the token rule. Both clocks must agree within MaxSkew, for due times
// are kept in Redis' time.
//
// Each opening has a number, as each copy has: it ends, gate by gate, the copies and openings before it, and opens no gate that a
// later one has ended. So the step back, when what lies there is not what was copied, is taken only while no gate can open.
//
// A Redis that fails over may forget a run, until the run's node tells it again. So a seal waits until all nodes in the roster
// have said that they did, 3 s at most, and notes which server that was; copy and open are refused at another one.
//
// # What is not moved
//
// The roster, for nodes that start at the other side enter it by themselves. Locks of business code (keys `lock:`), for
// their holders renew them where they took them: stop them, or let them take both locks for a while. Keys and entries of a newer version: they are in the way.
//
// # What is not covered
//
// A seal is confirmed by all replicas that the servers have at that time, and read back. If the old Redis fails over all
// the same to a replica that lacks it, or is restored from a backup taken before, its partitions are open again, and nodes
// that still work on it run what the other side runs as well. A note of the move that the old Redis loses alone is written again
// by seal. In a Cluster, nodes notice a failover only of the master that has the control record, and tell only that one; of
// another master's before the seal nobody knows, and one after it is noticed by copy and open. A node that is not in the
// roster, for its beat was lost as well, is not waited for. Switch the old Redis off when nobody uses it any more.
package move
