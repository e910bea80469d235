package main

import "slices"

// Fields that several records have, with one meaning.
var (
	fJob     = field{name: "job", kind: text, into: "Job", doc: "the job's name"}
	fTick    = field{name: "tick", kind: number, into: "Tick", doc: "the scheduled instant, ms; of a run by hand, when it was wanted"}
	fShard   = field{name: "shard", kind: small, into: "Shard", doc: "which part of the tick, from 0"}
	fShards  = field{name: "shards", kind: small, into: "Shards", doc: "into how many parts the tick is split; 1 for a whole one"}
	fAttempt = field{name: "attempt", kind: small, into: "Attempt", doc: "how often this tick was granted, with this run; from 1"}
	fPrev    = field{name: "prev", kind: optional, into: "Prev", doc: "the cursor before this step, ms; empty for a run that is no step of the cursor"}
	fNext    = field{name: "next", kind: optional, into: "Next", doc: "the cursor after this step, ms; empty when the schedule has no more"}
	fTrigger = field{name: "trigger", kind: text, into: "Trigger", doc: "why it runs: schedule, catch_up, manual, rerun, after or backfill"}
	fRequest = field{name: "request", kind: text, into: "Request",
		doc: "of a run by hand or of a backfill, and of its later attempts, the id in the request"}
	fOf = field{name: "of", kind: text, into: "TickID",
		doc: "the open tick that this is a shard of; empty for a run that holds its job by itself"}
	fParam   = field{name: "param", kind: param, into: "Param", doc: "the shard's parameter"}
	fPayload = field{name: "payload", kind: payload, into: "Payload", doc: "the function's payload; of a shard, empty: its tick has it"}
	fNode    = field{name: "node", kind: text, into: "Node", doc: "id of the node that was granted the run"}
	fName    = field{name: "name", kind: text, into: "NodeName", doc: "name of that node"}
	fGranted = field{name: "granted", kind: number, into: "Granted", doc: "when it was granted, ms; of an open tick, when it was opened"}
	fMode    = field{name: "mode", kind: overlap, into: "Overlap",
		doc: "the job's overlap policy at the grant: s(kip), q(ueue), r(eplace) or a(llow)"}
	fAuthor = field{name: "author", kind: text, into: "Author", doc: "author of the cancel; empty when a newer tick of the job cancels"}
	fWhy    = field{name: "reason", kind: rest, into: "Reason", doc: "why, in that person's words"}
)

// as is the field with another meaning.
func (f field) as(doc string) field {
	f.doc = doc
	return f
}

// records are all packed records of the ledger, in the order of the page.
var records = slices.Concat(ofRuns, beside)

var (
	// ofRuns are the records of jobs and their runs.
	ofRuns = []record{entry, run, pending, tick, row, passed}
	// beside are the records of events, moves and operators' requests.
	beside = []record{event, cancel, progress, wait, pause, backfill, gate, move, promotion, success, join}
)

var entry = record{
	name: "entry", lua: "entry", mark: "1", key: "{ns:p}:jobs", typ: "Entry",
	doc:     "The ledger's record of one job.",
	example: "1|1763726460000|f10e69bcc0b94df7|2025-11-21T12:00:00Z|1763726400000123|8c1d...|0191f1a2-...|1763640000000|1763726400000||||succeeded=1440",
	fields: []field{
		{name: "cursor", kind: optional, into: "Cursor", doc: "the earliest tick without a recorded answer, ms; empty when the schedule has no more"},
		{name: "digest", kind: text, into: "Digest", doc: "digest of the job's definition"},
		{name: "revision", kind: text, into: "Revision", doc: "revision of the program that brought the definition"},
		{name: "token", kind: number, into: "Token", doc: "the last fencing token given; 0 when none was"},
		{name: "rid", kind: text, doc: "id of the server that gave it, for the token rule"},
		{name: "open", kind: text, into: "HolderRun", doc: "the run, or the open tick, that holds the job, going or waiting; empty when nothing does"},
		{name: "base", kind: optional, into: "Base", doc: "where the recorded history begins, ms; it moves on when rows are trimmed"},
		{name: "last", kind: optional, into: "Last", doc: "the latest instant ever accounted for, ms"},
		{name: "pause", kind: window, into: "Pause", doc: "ticks from 'from' up to 'to' are recorded as paused; 'to' is empty while the pause has no end"},
		{name: "busy", kind: window, into: "Busy",
			doc: "with overlap queue or replace: from the grant to the end of the last run that held the job; empty again from the next grant on"},
		{name: "reattempt", kind: attempts, into: "ReattemptUntil, Reattempt",
			doc: "ticks before 'until' were accounted for before a rewind; granted anew, they are that attempt"},
		{name: "counts", kind: counts, into: "Counts, Restored, Ran, Won",
			doc: "ticks and runs by how they ended; 'retold', the latest tick of which a failover lost a shard or a later attempt, ms; 'ran', of a job with max_runs, the ticks that were granted; 'apart', how many rows of the history are ranges; and 'won', when the last run succeeded whose row has left, ms"},
	},
}

var run = record{
	name: "run", lua: "run", mark: "1", key: "{ns:p}:runs", typ: "Run", writes: "runText",
	doc: "A granted run that has not ended: its lease.",
	example: "1|1763726415000|3|report|1763726400000|0|1|1|1763726400000123|0191f1a2-...|a1|15000|1763726400000|1763726460000|schedule||" +
		"1763726400002|s|1|||",
	fields: []field{
		{name: "until_", kind: number, into: "Until", doc: "when the lease ends unless it is renewed, ms"},
		{name: "beat", kind: number, into: "Beat", doc: "how often it was renewed"},
		fJob, fTick, fShard, fShards, fAttempt,
		{name: "token", kind: number, into: "Token", doc: "the run's fencing token"},
		fNode, fName,
		{name: "ttl", kind: number, into: "TTL", doc: "how long a renewed lease lasts, ms"},
		fPrev, fNext, fTrigger, fRequest, fGranted, fMode,
		{name: "most", kind: small, into: "Attempts", doc: "how often the tick may be granted before a crash ends it"},
		fOf, fParam, fPayload,
	},
	views: []view{{name: "RUN_BEAT", doc: "what a renewal looks at; of the job it is the place", fields: []string{"beat", "token"},
		fixed: map[string]string{"job": "()[^|]*"}}},
}

var pending = record{
	name: "pending", lua: "pending", mark: "1", key: "{ns:p}:waiting", typ: "Run",
	doc:     "A run without a grant: by hand, a rerun, a follower's run, a shard, or a run that was handed back.",
	example: "1|report|1763726400000|0|1|1|||manual|0191f1a2-...|1763726400000||||{\"customer\":7}",
	fields: []field{
		fJob, fTick, fShard, fShards, fAttempt, fPrev, fNext, fTrigger, fRequest,
		{name: "at", kind: number, into: "Granted", doc: "when it may start, ms"},
		{name: "holds", kind: flag, into: "ReservesJob", doc: "'1' when it was granted before: it holds its job (but with overlap allow), and waits for the end of a pause"},
		fOf, fParam, fPayload,
	},
}

var tick = record{
	name: "tick", lua: "tick", mark: "1T", key: "{ns:p}:waiting", typ: "Run",
	doc:     "The open tick of a sharded job: no run, but the whole of its shards. It is not in `pending`.",
	example: "1T|report|1763726400000|4|2|0|succeeded|1|1|1763726400000|1763726460000|schedule||1763726400002|s|",
	fields: []field{
		fJob, fTick, fShards,
		{name: "left", kind: small, into: "Left", doc: "shards that have not ended for good"},
		{name: "bad", kind: number, doc: "shards that did not succeed"},
		{name: "worst", kind: text, doc: "the worst outcome so far; empty before the first"},
		fAttempt,
		{name: "top", kind: number, doc: "the highest attempt of a shard that has ended"},
		fPrev, fNext, fTrigger, fRequest, fGranted, fMode,
		fPayload.as("the function's payload, in every shard"),
	},
}

var (
	fRowPrev = fPrev.as("the cursor before the step that this row records, ms; empty for a row that is no step, such as a rerun or a shard")
	fAt      = field{name: "at", kind: number, into: "At", doc: "when it was recorded, or ended, ms"}
	fOutcome = field{name: "outcome", kind: outcome, into: "Outcome", doc: "how it ended"}
)

var row = record{
	name: "row", lua: "row", mark: "1", key: "{ns:p}:history:JOB", typ: "Row",
	doc: "How a run ended (kind R), or a sharded tick as a whole (kind T). Rows of shards have no prev, and name their tick in 'of'.",
	example: "1|R|1763726400000|1763726460000|1763726401500|1763726400000|0|1|1|1|0191f1a2-...|1763726400000123|0191f0b1-...|a1|schedule||||" +
		"succeeded||1763726400004||",
	fields: []field{
		{name: "kind", kind: letter("RT"), doc: "R: a run; T: a sharded tick, with the worst outcome of its shards"},
		fRowPrev, fNext, fAt, fTick, fShard, fShards, fAttempt,
		{name: "tries", kind: small, into: "Tries", doc: "how often the function was called; of kind T, the highest attempt of a shard"},
		{name: "run", kind: name, into: "Run", doc: "the run's id; of kind T, the open tick's"},
		{name: "token", kind: number, into: "Token", doc: "its fencing token; 0 for none"},
		fNode, fName, fTrigger, fRequest, fOf, fParam, fOutcome,
		{name: "reason", kind: text, into: "Reason", doc: "why it ended so, in a few words; empty for most"},
		{name: "started", kind: optional, into: "Started", doc: "when the function was called first, ms"},
		{name: "late", kind: text, into: "Late", doc: "a report that came after the outcome: its outcome and when it ended"},
		{name: "error", kind: rest, into: "Error", doc: "the error's text, 2 KiB at most"},
	},
	views: []view{
		{name: "ROW_AT", doc: "when it was recorded, whatever its kind", fields: []string{"at"}, fixed: map[string]string{"kind": "[RST]"}},
		{name: "ROW_STEP", doc: "its step, whatever its kind", fields: []string{"prev", "next"}, fixed: map[string]string{"kind": "([RST])"}},
		{name: "ROW_ENDED", doc: "which attempt of which tick it was",
			fields: []string{"kind", "tick", "shard", "shards", "attempt", "tries", "request", "of", "param"}},
		{name: "ROW_OUTCOME", doc: "whether a tick has succeeded", fields: []string{"kind", "tick", "shards", "request", "outcome"}},
		{name: "ROW_RUN", doc: "whose row it is", fields: []string{"tick", "attempt", "run", "request"}},
	},
}

var passed = record{
	name: "range", lua: "row", mark: "1|S", key: "{ns:p}:history:JOB", typ: "Row",
	doc: "Ticks in a row that did not run, for one reason. A row that carries on the one before it is merged into it. With outcome superseded " +
		"it is also the step of a replaced definition (count 0 when no tick was due) and of a rewind.",
	example: "1|S|1763726400000|1763727000000|1763727000010|1763726400000|1763726940000|10|missed|late|",
	fields: []field{
		fRowPrev, fNext, fAt,
		{name: "tick", kind: optional, into: "Tick", doc: "the first tick, ms; empty when the schedule had no more"},
		{name: "last", kind: optional, into: "Until", doc: "the last tick, ms; empty when there is none"},
		{name: "count", kind: number, into: "Count", doc: "how many ticks"},
		fOutcome,
		{name: "reason", kind: text, into: "Reason", doc: "why they did not run"},
		{name: "note", kind: text, into: "Note", doc: "the schedule that was replaced, or the outcome of the job that is followed"},
	},
}

var event = record{
	name: "event", lua: "event", mark: "1", key: "{ns:p}:outbox", typ: "Event", unread: true,
	doc:     "The end of a tick, or of ticks in a row, of a job with followers. It leaves the outbox after its delivery to all followers.",
	example: "1|report|1763726400000|1763726460000|1763726400000|1763726400000|1|succeeded|1763726401500",
	fields: []field{
		{name: "upstream", kind: text, into: "Upstream", doc: "the job that is followed"},
		fPrev, fNext,
		{name: "tick", kind: optional, into: "Tick", doc: "the first tick, ms"},
		{name: "last", kind: optional, into: "Until", doc: "the last tick, ms"},
		{name: "count", kind: number, into: "Count", doc: "how many ticks"},
		fOutcome,
		{name: "at", kind: number, into: "At", doc: "when the tick's end was recorded, ms"},
	},
	views: []view{{name: "EVENT_UPSTREAM", doc: "the job that is followed", fields: []string{"upstream"}}},
}

var cancel = record{
	name: "cancel", lua: "cancel", mark: "1", key: "{ns:p}:cancels", typ: "Cancel",
	doc:     "A request to end a run. The run's node finds it with its next sweep.",
	example: "1|1763726405000|ann|wrong customer",
	fields: []field{
		{name: "at", kind: number, doc: "when it was wanted, ms"},
		fAuthor, fWhy,
	},
}

var progress = record{
	name: "progress", mark: "1", key: "{ns:p}:kept, field g: and run", typ: "Progress", writes: "text",
	doc:     "The progress that a run reports; sent with its renewals.",
	example: "1|1763726405000|120|200|1763726401000|20|reading page 120",
	fields: []field{
		{name: "at", kind: number, into: "At", doc: "when the run reported it, ms"},
		{name: "done", kind: number, into: "Done", doc: "how many steps are done"},
		{name: "total", kind: number, into: "Total", doc: "of how many; 0 when that is not known"},
		{name: "since", kind: number, into: "Since", doc: "when the run first reported progress, ms: the beginning of the estimate"},
		{name: "from", kind: number, into: "From", doc: "how many steps were done then"},
		{name: "note", kind: rest, into: "Note", doc: "in the job's words"},
	},
}

var wait = record{
	name: "wait", lua: "wait", mark: "2", key: "{ns:p}:kept, field g: and run", typ: "Wait", writes: "text",
	doc:     "The reason why a granted run waits before its start, in the place of its progress; sent with its renewals.",
	example: "2|1763726405000|1|waits for the guard etcd: lock: store unreachable",
	fields: []field{
		{name: "at", kind: number, into: "At", doc: "since when, ms; of a run that waits no more, when that ended"},
		{name: "refused", kind: flag, into: "Refused", doc: "'1' when the store of the lock refuses or does not answer; else another holder has the lock"},
		{name: "note", kind: rest, into: "Note", doc: "in words, without a bar; empty when the run waits no more"},
	},
}

var pause = record{
	name: "pause", lua: "pause", mark: "1", key: "{ns:p}:pauses", typ: "Pause", unread: true,
	doc:     "Author and reason of a pause. The entry decides whether the job is paused.",
	example: "1|1763726405000||ann|the database is being moved",
	fields: []field{
		{name: "at", kind: number, into: "Since", doc: "when, ms"},
		{name: "till", kind: optional, into: "Until", doc: "until when, ms; empty: without an end"},
		fAuthor.as("who paused it"), fWhy,
	},
}

var backfill = record{
	name: "backfill", lua: "backfill", mark: "1", key: "{ns:p}:backfills", typ: "Backfill",
	doc: "The ticks of a range that a job runs beside its schedule, and how far it has come.",
	example: "1|0191f1a2-...|report|going|1763640000000|1763726400000|1763650000000|2|1440|succeeded=165,failed=1|" +
		"1763649940000=0191f1a2-...-1763649940000|1763726405000|1763726505000||ann||",
	fields: []field{
		{name: "id", kind: name, into: "ID", doc: "its id; a run of it has the id and the tick as its own id"},
		fJob,
		{name: "state", kind: word, into: "State", doc: "going; cancelled, also while runs of it have not ended; done"},
		{name: "from", kind: number, into: "From", doc: "the range's beginning, ms"},
		{name: "to", kind: number, into: "To", doc: "the range's end, ms; a tick at this instant belongs to it"},
		{name: "next", kind: optional, into: "Next", doc: "no tick from this instant on has a run yet, ms; empty when all have, or it was cancelled"},
		{name: "parallel", kind: small, into: "Parallel", doc: "how many of its runs wait or go at a time"},
		{name: "total", kind: number, into: "Total", doc: "how many ticks the range had when it began"},
		{name: "counts", kind: tally, into: "Counts", doc: "ticks that have ended, by how they did"},
		{name: "going", kind: going, into: "Going", doc: "ticks whose runs have not ended, with the runs"},
		{name: "began", kind: number, into: "Began", doc: "when it was requested, ms"},
		{name: "looked", kind: number, into: "Looked", doc: "when a node last looked whether it can go on, ms"},
		{name: "ended", kind: optional, into: "Ended", doc: "when it ended, ms"},
		fAuthor.as("author of the request"),
		{name: "by", kind: text, into: "By", doc: "who cancelled it"},
		{name: "reason", kind: rest, into: "Reason", doc: "why it was cancelled, in that person's words"},
	},
}

var gate = record{
	name: "gate", lua: "gate", mark: "1", key: "{ns:p}:gate", typ: "Gate", writes: "String",
	doc:     "The generation that may make new jobs in a partition, and whether a move has closed the partition. Every script that grants or changes a job looks at it first.",
	absent:  "1|0||open||",
	example: "1|3|blue|open||",
	fields: []field{
		{name: "epoch", kind: number, into: "Epoch", doc: "number of the last promotion that came here"},
		{name: "generation", kind: text, into: "Generation", doc: "the generation that may make new jobs"},
		{name: "state", kind: word, into: "State", doc: "open; sealed, for ever or until the move is undone; filling, while a move copies jobs here; burnt, " +
			"when that move was undone"},
		{name: "move", kind: text, into: "Move", doc: "id of the move that had the gate last"},
		{name: "words", kind: words, into: "Words", doc: "for people: where the jobs are; while a move fills the partition, also which copy has begun"},
	},
	views: []view{{name: "GATE_OPEN", doc: "that it is open", fields: []string{"move"}, fixed: map[string]string{"state": "open"}}},
}

var move = record{
	name: "move", lua: "move", mark: "1", key: "{ns}:control, field move", typ: "Move", writes: "text",
	doc:     "A namespace's note of a move to or from another Redis.",
	example: "1|0191f1a2-...|from|sealed|10.0.0.7:6379|1763726405000",
	fields: []field{
		{name: "id", kind: name, into: "ID", doc: "the move's id, a uuid v7: a later move has a greater one"},
		{name: "role", kind: word, into: "Role", doc: "from or to: which side this is"},
		{name: "state", kind: word, into: "State", doc: "from: sealing, sealed, moved; to: filling, opening, open, burnt"},
		{name: "peer", kind: tidied, into: "Peer", doc: "address of the other side, without a password"},
		{name: "at", kind: instant, into: "At", doc: "when the state was reached, ms"},
	},
}

var promotion = record{
	name: "promotion", lua: "promotion", mark: "1", key: "{ns}:control, field promoting", typ: "Promotion", writes: "Text",
	doc:     "A promotion that is under way. Interrupted, it goes on with the next call of the same promotion.",
	example: "1|4|green||",
	fields: []field{
		{name: "epoch", kind: number, into: "Epoch", doc: "the promotion's number"},
		{name: "generation", kind: text, into: "Generation", doc: "the generation that is promoted"},
		{name: "pattern", kind: text, into: "Pattern", doc: "of job names; empty for all jobs"},
		{name: "cancel", kind: flag, into: "Cancel", doc: "'1' to cancel runs in flight"},
	},
}
