// Package ledger is the tick ledger: what is due, what runs, what ran, per job, in Redis.
//
// # The cursor decides, the lease guards
//
// Each job has one entry with a cursor: the earliest scheduled tick not yet accounted for. A claim
// is a compare-and-set step: "from the cursor I see, run this tick, and the next one is that". The
// claim is granted only if the cursor and the definition are the stored ones; otherwise the answer
// is the stored cursor. So a tick is granted once, however many nodes claim it and however late.
// The cursor cannot jump: ticks between the cursor and the tick run are recorded in the same step.
//
//	            claim granted                    settle
//	cursor ──────────────────────► leased ───────────────────► row (succeeded, failed, ...)
//	   │                            │  ▲ renew │
//	   │ passes; claim, job held    │  └───────┘ reap (until passed, beat still)
//	   ▼                            │ unclaim        └────────► row (abandoned)
//	row (skipped, missed, paused)   ▼                               │ attempts left
//	                             pending ◄──────────────────────────┘
//	                              ▲   └── claim ──► leased
//	              trigger, rerun, relay
//
// A grant is a lease {run, token, node, ttl, until, beat}. Nothing expires by itself: renewal
// moves until and counts beat, also when until has passed, as long as the run was not reaped.
// A run is reaped only if its beat has not moved since it was seen and until has passed. The
// first terminal outcome wins; a later report is answered Lost and kept in the same row.
//
// # The chain
//
// Every row that accounts for scheduled ticks carries the cursor before (prev) and after (next)
// its step. In the order of the steps, each row's next is the prev of the one after it, from the
// entry's base to its cursor; runs in flight and pending ones fill their own link. Steps go forward
// in time, with two exceptions: a replaced definition may set the cursor back, to any instant after
// the last one accounted for, and an operator may rewind it; then ticks are granted as later
// attempts. Verify checks the chain against the schedules.
//
// # Definitions
//
// A definition is stored once, under its digest, which covers its job's name and its generation. A
// job's entry names the current one. Nodes announce which definitions they hold in chunks, so that
// a promotion finds all of its generation; a definition stays as long as an entry names it, or a
// chunk that nodes announced within AnnouncedFor. See Announce and Tidy.
//
// # Windows
//
// A script cannot count ticks: a node plans a step, and the script checks the step against two
// windows in the entry. Exactly the ticks in Pause are recorded as paused. Of the ticks in Busy,
// which came due during the last run of a queue or replace job, the latest runs and the rest are
// recorded as overlapped. A claim that does not fit is answered Stale, with both windows. A window is
// over when the cursor is behind it.
//
// # Jobs that follow
//
// A script that ends or passes an upstream's tick leaves an event in the outbox of its partition.
// Relay delivers the event to each follower, in a script of the follower's partition, and may be
// repeated; Relayed removes the event. Define the follower before Follow: an event for an unknown
// job is dropped.
//
// # Rooms
//
// This package has what all calls need: the namespace and its keys, records, scripts, control
// record, gates, epochs and errors. The calls themselves are functions of a *Ledger in the packages
// below, each with its scripts beside it; pieces that scripts of several rooms share are in lib and
// codec. One suite, here, tests all rooms, because every test needs several: a job is defined,
// claimed and settled before anything can be said of its history.
//
// # Arguments
//
// A script names its keys on the line "-- keys:", and nothing in it is numbered by hand. Scripts
// that are called often take packed arguments, which gen writes from a table into the script and
// into args_gen.go of its room. The other scripts take one JSON argument, the fields of a struct, which
// lib/args.lua decodes.
//
// # Time
//
// Scripts that grant, reap or move a cursor take the caller's idea of Redis' time and do nothing
// but answer ErrClock when Redis' own differs by more than MaxSkew. That stops early claims,
// claims that sat in a buffer, and everything at a step of Redis' clock.
//
// # When a reply is lost
//
// A claim names its run by an id that the caller made. Repeated by the same node it gives the
// same grant. A repeated settle gives the same answer. A run handed back (Unclaim) goes to
// pending under a fresh id, so a delayed copy of the old claim finds nothing.
//
// # Tokens
//
// state {t, r} per job; now = TIME in µs; rid = id of the server
//
//	token = (r == rid) and max(t+1, now) or max(t + 1 s, now + 60 s)
//
// Tokens of one job strictly increase in the order of its grants, across lease expiry, a clock
// stepping back, failovers that lost writes and empty restarts; docs/guarantees.md says where
// that ends.
package ledger
