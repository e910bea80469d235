// Package move moves a namespace to another Redis: standalone, with Sentinels or a Cluster, with as
// many partitions or another number.
//
// # The steps
//
//	          plan   changes nothing; lists the namespace's contents and the obstacles
//	1  seal   reserves the place at the other side, then closes this one: nothing is granted, accepted or changed
//	          any more; runs end, are cancelled, or are reaped
//	2  copy   copies all records, and compares
//	3  open   opens the other side, one partition after another, and records here that the namespace has moved
//	   abort  before open: burns the place at the other side, and then opens this one again
//
// Each step may be killed at any point and run again, and a step that is run once too often gives
// the same answer. A step that comes too early or too late is refused, with the name of the next
// step. After open the way back is a move back.
//
//	from   (open) ──► sealing ──► sealed ─────────────────────────► moved
//	           ▲─────────┴──────────┘ abort                          ▲
//	to     (nothing) ──► filling ───────► opening ──► gates open ──► open
//	                        └──► burnt
//
// # Why no tick runs twice, and none is lost
//
// Every write carries the id of the move and is one script that first checks whether the move is,
// right there, in the write's state. The ids are ordered in time. A gate or a control record of a
// move that was undone accepts nothing from that move or an earlier one: a command that comes late,
// a minute or a month, finds its state gone. At most one of the two Redis is open, because open
// comes after sealed, and abort unseals only after it has burnt the id at the other side, by the
// same compare-and-set by which open would begin. If the other side cannot be reached, abort is
// refused.
//
// A copy is taken when nothing runs and nothing can be cancelled, so it is of one moment; open
// compares both sides once more. Every part of a copy has a number and is written once, in order,
// so a part that the network repeats doubles nothing. Tokens are copied without the identity of the
// server that granted them: the first token of each job at the other side leaps by the guard of the
// token rule. Both clocks must agree within MaxSkew, because due times are in Redis' time.
//
// Each opening has a number, as each copy has. An opening ends, gate by gate, the copies and
// openings before it, and opens no gate that a later one has ended. So the step back, when the
// other side does not match the copy, is taken only while no gate can open.
//
// A Redis that fails over may forget a run until the run's node reports it again. So a seal waits,
// 3 s at most, until all nodes in the roster have announced that they have reported, and records to
// which server (in a Cluster, to which masters); copy and open are refused at another server.
//
// # What stays behind
//
// The roster, because nodes that start at the other side enter it by themselves. Locks of business
// code (keys `lock:`), because their holders renew them where they took them: stop the holders, or
// let them take both locks for a while. Keys and entries of a newer version: they are in the way.
//
// # Not covered
//
// A seal is confirmed by all replicas that the servers have at that time, and read back. If the old
// Redis still fails over to a replica without the seal, or is restored from an older backup, its
// partitions are open again, and nodes that still work on it run the same ticks as the other side.
// If the old Redis loses only the record of the move, seal writes it again. A node that is not in the
// roster, because its beat was lost as well, is not waited for. Switch the old Redis off when it is
// no longer used.
package move
