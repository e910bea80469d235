package main

// Arguments that several verbs have.
var (
	aNow     = arg{name: "now", typ: argNumber, doc: "the caller's idea of Redis' time, ms"}
	aSkew    = arg{name: "skew", typ: argMillis, doc: "tolerated difference, ms"}
	aKeep    = arg{name: "keep", typ: argInt, doc: "rows to keep"}
	aKeepFor = arg{name: "keep_for", typ: argMillis, doc: "age to keep, ms"}
	aJob     = arg{name: "job", typ: argText, doc: "the job's name"}
	aRun     = arg{name: "id", typ: argText, doc: "id of the run"}
	aMost    = arg{name: "most", typ: argInt, numeric: true, doc: "most pending runs in this partition"}
	aAuthor  = arg{name: "author", typ: argText, doc: "who wants it"}
	aReason  = arg{name: "reason", typ: argText, doc: "why"}
	aToken   = arg{name: "token", typ: argOptional, doc: "the run's token, '' for any"}
	aFresh   = arg{name: "fresh", typ: argText, doc: "id of the run that may follow"}
	aServer  = arg{name: "server", typ: argText, doc: "id of the server that the caller knows, '' for any"}
	aMove    = arg{name: "id", typ: argText, doc: "id of the move"}
	aPeer    = arg{name: "peer", typ: argTidied, doc: "address of the other side"}
)

// verbs are the scripts of one thing whose arguments are generated.
var verbs = []verb{
	{script: "trigger", args: []arg{
		aJob, aRun.as("id of the run to be"), aMost,
		{name: "at", typ: argOptional, doc: "when to run, ms, '' for now"},
		{name: "remember", typ: argOptional, doc: "for how long the id is remembered, ms, '' for as long as the history has it"},
		{name: "many", typ: argInt, numeric: true, doc: "most remembered ids"},
		{name: "payload", typ: argBytes, doc: "what the function is given"},
		{name: "ids", typ: argList, doc: "the ids under which the run may go on"},
	}},
	{script: "rerun", args: []arg{
		aJob, aRun, aFresh.as("id of the next attempt"), aMost,
		{name: "ids", typ: argList, doc: "the ids under which the next attempt may go on"},
	}},
	{script: "cancel", args: []arg{aJob, aRun, aAuthor, aReason, aKeep, aKeepFor}},
	{script: "pause", args: []arg{
		aJob,
		{name: "what", typ: argText, doc: "pause or resume"},
		aAuthor, aReason,
		{name: "till", typ: argOptional, doc: "end, ms, '' for none"},
	}},
	{script: "rewind", args: []arg{
		aNow, aSkew, aKeep, aKeepFor, aJob,
		{name: "digest", typ: argText, doc: "expected digest"},
		{name: "from", typ: argOptional, doc: "expected cursor, ms"},
		{name: "to", typ: argNumber, doc: "new cursor, ms"},
	}},
	{script: "relay", args: []arg{
		aJob,
		{name: "upstream", typ: argText, doc: "the job that is followed"},
		aRun.as("id of the run to be"), aMost,
		{name: "nxt", typ: argOptional, doc: "the cursor after the step, ms, '' for none"},
		{name: "tick", typ: argNumber, doc: "first tick, ms"},
		{name: "last", typ: argNumber, doc: "last tick, ms"},
		{name: "num", typ: argNumber, numeric: true, doc: "how many ticks"},
		{name: "outcome", typ: argOutcome, doc: "what became of them"},
		{name: "known", typ: argNumber, numeric: true, doc: "when it was known, ms"},
		{name: "remember", typ: argMillis, numeric: true, doc: "for how long the id is remembered, ms"},
		aKeep, aKeepFor,
		{name: "unheld", typ: argText, doc: "what becomes of a tick that succeeded when nobody alive holds the job as it is stored: " +
			"'1' it is missed, '0' it waits; '' it runs once somebody does"},
		{name: "holders", typ: argText, doc: "digests of the definitions of the job that are held, with commas between them"},
	}},
	{script: "sweep", args: []arg{
		{name: "due_until", typ: argNumber, doc: "cursors until then, ms"},
		{name: "lapsed_until", typ: argNumber, doc: "leases that lapsed until then, ms"},
		{name: "start_until", typ: argNumber, doc: "runs that may start until then, ms"},
		{name: "skip_due", typ: argText, doc: "how many cursors to pass over, '' not to read any"},
		{name: "skip_lapsed", typ: argText, doc: "the same of leases"},
		{name: "skip_pending", typ: argText, doc: "the same of runs"},
		{name: "most", typ: argInt, doc: "most of each"},
		{name: "skip_rows", typ: argText, doc: "how many rows of the outbox to pass over, '' not to read it, nor what is to be cancelled"},
		{name: "most_rows", typ: argInt, doc: "most rows of the outbox"},
		{name: "both_ends", typ: argFlag, doc: "'1' to read its newest rows as well"},
	}},
	{script: "begin", args: []arg{
		{name: "generation", typ: argText, doc: "the generation to be promoted"},
		{name: "pattern", typ: argText, doc: "pattern of job names, '' for all"},
		{name: "cancel", typ: argFlag, doc: "'1' to cancel what runs"},
		{name: "least", typ: argNumber, numeric: true, doc: "the highest epoch that a partition's gate has"},
		{name: "seen", typ: argNumber, doc: "the epoch that the caller has seen in the control record"},
		aNow, aSkew,
	}},
	{script: "gate", args: []arg{
		aMove,
		{name: "state", typ: argText, doc: "state to be"},
		{name: "own", typ: argText, doc: "states it may come from, of this very move, each followed by a comma"},
		{name: "others", typ: argText, doc: "the same when an older move had the gate last, or none did; 'none,' is a gate that is not there"},
		{name: "words", typ: argTidied, doc: "for people: where the jobs are"},
		{name: "epoch", typ: argText, doc: "epoch to be, '' for the one it has"},
		{name: "generation", typ: argText, doc: "generation to be, with the epoch"},
		{name: "copy", typ: argOptional, doc: "the copy that must have been ended by whoever opens, '' for any: an opening that comes late finds a later one here"},
	}},
	{script: "reserve", args: []arg{
		aMove,
		{name: "format", typ: argText, doc: "format of the namespace to be"},
		{name: "partitions", typ: argInt, doc: "its number of partitions"},
		{name: "generation", typ: argText, doc: "its active generation"},
		{name: "epoch", typ: argNumber, doc: "number of the last promotion"},
		aPeer,
		{name: "state", typ: argText, doc: "filling or burnt"},
		{name: "back", typ: argText, doc: "id of the move by which the namespace went from here to where it comes back from, or ''"},
	}},
	{script: "advance", args: []arg{
		aMove,
		{name: "role", typ: argText, doc: "from or to"},
		{name: "state", typ: argText, doc: "state to be; 'undone' takes the note away and remembers the id"},
		{name: "own", typ: argText, doc: "states of this move that it may come from, each followed by a comma"},
		{name: "others", typ: argText, doc: "the same, 'role/state', of an older one; 'none,' is no move"},
		aPeer,
		{name: "counted", typ: argFlag, doc: "'1' to count one more copy"},
		{name: "copies", typ: argOptional, doc: "how many copies there must have been, '' for any"},
		{name: "fields", typ: argList, doc: "fields and their values, to be set as well"},
	}},
}

// batches are the scripts of several things whose arguments are generated.
var batches = []verb{
	{script: "unclaim", args: []arg{aKeep, aKeepFor}, forms: []form{{name: "item", args: []arg{aJob, aRun, aToken, aFresh}}}},
	{script: "reap", args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer}, forms: []form{
		{name: "item", args: []arg{aJob, aRun, {name: "beat", typ: argNumber, doc: "the beat that was seen"}, aFresh}},
	}},
	claim, settle,
}

var claim = verb{script: "claim",
	args: []arg{
		aNow, aSkew,
		{name: "node", typ: argText, doc: "id of the node that asks"},
		{name: "name", typ: argText, doc: "its name"},
		aKeep, aKeepFor, aServer,
		{name: "short", typ: argMillis, numeric: true, doc: "how long a lease lasts at most until it is renewed, ms"},
	},
	forms: []form{
		{name: "plain", places: true, doc: "a tick that passes none and has no shards, of a schedule that has more", args: []arg{
			{name: "terms", typ: argText, doc: "'ttl ms|overlap mode (s q r a)|most attempts|trigger'"},
			aJob,
			{name: "digest", typ: argText, doc: "of the caller's definition"},
			{name: "run", typ: argText, doc: "id of the run to be"},
			{name: "tick", typ: argText, doc: "to run, and the cursor that the caller sees, ms"},
			{name: "next", typ: argText, doc: "where the cursor goes, ms"},
		}},
		{name: "other", doc: "any other, which begins with one letter", args: []arg{
			{name: "kind", typ: argText, doc: "t(ick), p(ending run), or s(hard)"},
			aJob,
			{name: "digest", typ: argText, doc: "of the caller's definition"},
			{name: "run", typ: argText, doc: "id of the run to be, or of the pending one"},
			{name: "ttl", typ: argMillis, doc: "of the lease, ms"},
			{name: "mode", typ: argText, doc: "overlap mode: s q r a"},
			{name: "most", typ: argInt, doc: "how often the tick may be granted before a crash ends it"},
			{name: "from", typ: argText, doc: "of a tick: the cursor the caller sees, ms; of a pending run: a reason for which to record it as missed " +
				"instead, or ''. It is for runs that follow another job's and that nobody was granted yet, and for ticks that were handed back"},
			{name: "passes", typ: argText, doc: "of a tick: ticks that will not run, from 'from' on without a gap, each 'outcome,reason,first,last,count,next' and ended by ';'"},
			{name: "tick", typ: argOptional, doc: "of a tick: what to run, ms, '' for none"},
			{name: "next", typ: argOptional, doc: "of a tick: where the cursor goes, ms, '' for none"},
			{name: "trigger", typ: argText, doc: "of a tick: why it runs"},
			{name: "parts", typ: argText, doc: "of a job with several shards, but of a shard: 'N,param,param,...', the params escaped; else ''"},
		}},
	},
}

var settle = verb{script: "settle",
	args: []arg{aKeep, aKeepFor, aServer},
	forms: []form{
		{name: "plain", places: true, doc: "a run that succeeded at once and left nothing", args: []arg{
			{name: "none", typ: argText, doc: "''"},
			aJob,
			{name: "run", typ: argText, doc: "its id"},
			{name: "token", typ: argText, doc: "its token, '' for any"},
			{name: "started", typ: argText, doc: "ms"},
			{name: "ended", typ: argText, doc: "ms"},
		}},
		{name: "other", doc: "any other", args: []arg{
			{name: "outcome", typ: argOutcome, doc: "how it ended"},
			aJob,
			{name: "run", typ: argText, doc: "its id"},
			aToken,
			{name: "reason", typ: argTidied, doc: "why it ended so"},
			{name: "started", typ: argNumber, doc: "ms"},
			{name: "ended", typ: argNumber, doc: "ms"},
			{name: "tries", typ: argInt, doc: "how often the function was called"},
			{name: "error", typ: argText, doc: "the error's text"},
			{name: "output", typ: argBytes, doc: "the last of its output"},
			{name: "fresh", typ: argText, doc: "id of the next attempt, if this end asks for one and there are attempts left, or ''"},
		}},
	},
}
