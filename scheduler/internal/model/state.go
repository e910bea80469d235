package model

// The measures of the small world. Time is counted in units of max_skew, so a lease lasts three,
// the least that is allowed, and its holder's deadline lies one earlier.
const (
	ttl    = 3
	margin = 1
	skew   = 1
	ticks  = 3         // instants 1 to 3 may be ticks; Redis' clock stands still at the last
	end    = ticks + 1 // a cursor behind the last tick
)

// State is the whole world at one moment. All of it is small numbers, so that it is a key of a
// map; states that differ only in names are made equal by canonical.
type State struct {
	Now      int8 // Redis' clock
	Records  [2]Record
	Nodes    [2]Node
	Flight   [2]Command       // sent and not yet delivered
	Granted  [ticks + 1]uint8 // for the checks: by tick, a bit for each shard and attempt that was granted
	Left     Budget           // how much may still go wrong
	Highest  int8             // for the checks: the latest that Redis' clock has shown
	Greatest int8             // for the checks: the greatest token that was granted, as Record.Token
}

// Budget is how often each kind of thing may still happen. It keeps the world finite.
type Budget struct {
	Faults, Steps, HandBacks, Deploys, Failovers int8
}

// Digest names one of the definitions; a greater one is of a newer build.
type Digest int8

// Verdict is the answer of the history for a tick.
type Verdict int8

// The verdicts.
const (
	Unanswered Verdict = iota // the cursor has not passed it
	NotRun                    // recorded with a reason
	Open                      // granted, not ended
	Ran                       // recorded with an outcome
)

// Record is what Redis holds of the job, in small numbers: load makes a [Ledger] of a Record, and
// store the reverse. The second Record is the copy that a failover falls back on.
type Record struct {
	Cursor    int8 // first tick without an answer; end when there is none
	Last      int8 // latest instant accounted for
	Digest    Digest
	Tick      int8 // the open one, 0 for none
	Count     int8 // its shards, pinned
	TickID    int8 // the id of an open tick with shards, 0 for a run
	Shards    [2]Shard
	Since     int8    // Redis' time when an open tick with shards was opened
	Busy      [2]int8 // the busy time of the job, from and to; 0 for none
	Restarted bool    // Redis is not the run of the server that gave the last token
	Token     int8    // the last token less Redis' clock, µs; -1 for any that is behind the clock
	Opened    int8    // for the checks: the shards that the open tick began with
	Verdicts  [ticks + 1]Verdict
}

// ShardPhase is where one shard of the open tick stands. A tick without shards has one.
//
//	          claim ──► Leased ── settle, reap ──► Done
//	            ▲         │
//	            │         │ unclaim, reap with attempts left
//	open ──► Pending ◄────┘
type ShardPhase int8

// The phases of a shard.
const (
	Absent ShardPhase = iota
	Pending
	Leased
	Done
)

// Shard is one part of the open tick.
type Shard struct {
	Phase   ShardPhase
	Attempt int8
	Run     int8 // id of the run, granted or pending
	Holder  int8 // node, 2 for a process that is gone
	Until   int8 // the rest of the lease by Redis' clock; 0 or less: lapsed
	Since   int8 // Redis' time of the grant; of a pending run, of its return
}

// Commands and leases whose process is gone have this node.
const nobody = 2

// Power is whether a process runs.
type Power int8

// The powers.
const (
	Up Power = iota
	Paused
	Down
)

// NodePhase is what a node does for the job.
//
//	Idle ── claim ──► Waiting ── granted ──► Executing ── returns, deadline ──► Finished ── settle ──► Idle
//	                     │ └─ ahead, due ──────┘
//	                     │ too late to start, or stopping
//	                     └──────────────────► Returning ── unclaim ──► Idle
type NodePhase int8

// The phases of a node.
const (
	Idle      NodePhase = iota
	Waiting             // a copy of its claim is unanswered
	Ahead               // granted before its tick is due
	Executing           // in the function
	Returning           // granted, and handing it back
	Finished            // with an outcome to settle
)

// Node is one process.
type Node struct {
	Power    Power
	Digest   Digest
	View     int8   // the cursor it believes; 0 when it has not looked
	Saw      Digest // the stored definition, as it was when the node looked
	Clock    int8   // its idea of Redis' time less Redis' time
	Steady   int8   // for how long it has seen Redis' clock run steadily, at most ttl
	Phase    NodePhase
	Ask      Command // Waiting: the claim, to be repeated
	Run      int8
	Tick     int8
	Shard    int8
	Age      int8 // Waiting: since the first copy was sent
	Deadline int8 // the time until its context ends, by its own clock
}

// Kind is a script of the ledger.
type Kind int8

// The scripts.
const (
	None Kind = iota
	ClaimTick
	ClaimPending
	Renew
	Settle
	Reap
	Unclaim
	Define
)

// Command is a call of a script, with the facts that its sender had then.
type Command struct {
	Kind     Kind
	Node     int8
	Run      int8
	Tick     int8
	Shard    int8
	Attempt  int8
	Part     bool // claim: the run is a shard
	Cursor   int8 // claim and define: where the sender sees it
	Asking   bool // claim: only repeats a grant that was made before
	Next     int8 // where it shall go
	Digest   Digest
	Was      Digest // define: the definition to be replaced
	Same     bool   // define: by one with the same schedule
	Beating  bool   // reap: the run was renewed since the sender looked
	Clock    int8   // the sender's idea of Redis' time less Redis' time
	Deadline int8   // the rest of a deadline counted from the sending of this copy
}
