package main

// Arguments that several verbs have.
var (
	aNow     = arg{name: "now", typ: argNumber, doc: "the caller's idea of Redis' time, ms, 0 for none"}
	aSkew    = arg{name: "skew", typ: argMillis, doc: "tolerated difference, ms"}
	aKeep    = arg{name: "keep", typ: argInt, doc: "rows to keep"}
	aKeepFor = arg{name: "keep_for", typ: argMillis, doc: "age to keep, ms"}
	aJob     = arg{name: "job", typ: argText, doc: "the job's name"}
	aDigest  = arg{name: "digest", typ: argText, doc: "of the caller's definition"}
	aRun     = arg{name: "id", typ: argText, doc: "id of the run"}
	aToken   = arg{name: "token", typ: argOptional, doc: "the run's token, '' for any"}
	aFresh   = arg{name: "fresh", typ: argText, doc: "id of the run that may follow"}
	aServer  = arg{name: "server", typ: argText, doc: "id of the caller's epoch, '' for any"}
	aGap     = arg{name: "gap", typ: argText, doc: "'from,last,count': ticks that Redis has lost, to be recorded as missed; '' for none"}
	aText    = arg{name: "text", typ: argText, doc: "its text, '' to find out whether the digest is stored"}
)

// verbs are the scripts that are called often, or with many items: their arguments are generated.
// The other scripts take JSON.
var verbs = []verb{
	sweep, claim, settle, define,
	{room: "settle", script: "unclaim", args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer}, forms: []form{{name: "item", args: []arg{aJob, aRun, aToken, aFresh}}}},
	{room: "settle", script: "reap", args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer}, forms: []form{
		{name: "item", args: []arg{aJob, aRun, {name: "beat", typ: argNumber, doc: "the beat that was seen"}, aFresh}},
	}},
	{room: "settle", script: "renew", args: []arg{aNow, aSkew, aServer}, forms: []form{{name: "item", places: true, args: []arg{
		{name: "run", typ: argText, doc: "id of the run"},
		{name: "token", typ: argText, doc: "its token, '' for any"},
		{name: "ttl", typ: argText, doc: "of the lease, ms"},
		{name: "progress", typ: argText, doc: "the run's progress, '' if none was reported"},
	}}}},
	{room: "epoch", script: "recall", args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer}, forms: []form{{name: "item", args: []arg{
		aJob, aDigest,
		{name: "cursor", typ: argNumber, doc: "the job's cursor before the failover, ms"},
		{name: "opened", typ: argOptional, doc: "the cursor behind a sharded tick that nodes have opened, ms, where 'cursor' lies before that tick; else ''"},
		{name: "heard", typ: argFlag, doc: "'1' when Redis had this cursor: all ticks before the cursor are accounted for"},
		{name: "sharded", typ: argFlag, doc: "'1' when ticks of the job are opened in shards: each node has reported some shards only"},
		aGap,
	}}}},
	{room: "epoch", script: "reassert", args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer}, forms: []form{{name: "item", args: []arg{
		aJob, aDigest, aRun,
		{name: "record", typ: argText, doc: "the run's record from the job on"},
		aGap,
		{name: "parts", typ: argText, doc: "of a shard, to open its tick anew if Redis has lost it: 'N,param,param,...'; else ''"},
		{name: "next", typ: argOptional, doc: "of a shard or a later attempt: the tick after the run's, ms, for all before may be lost; else ''"},
		{name: "ended", typ: argOptional, doc: "of a run whose end will be reported: when it ended, ms; else ''"},
	}}}},
	{room: "define", script: "announce", args: []arg{
		aNow, aSkew,
		{name: "generation", typ: argText, doc: "of the nodes"},
		{name: "revision", typ: argTidied, doc: "of the nodes"},
	}, forms: []form{{name: "item", args: []arg{{name: "digest", typ: argText, doc: "of a chunk"}, aText}}}},
	{room: "define", script: "current", args: []arg{
		{name: "digest", typ: argText, doc: "of a chunk"},
		{name: "revision", typ: argTidied, doc: "of the node"},
	}},
	{room: "define", script: "store", forms: []form{{name: "item", args: []arg{{name: "digest", typ: argText, doc: "of a definition"}, aText}}}},
}

var sweep = verb{room: "query", script: "sweep", args: []arg{
	{name: "due_until", typ: argNumber, doc: "cursors until then, ms"},
	{name: "lapsed_until", typ: argNumber, doc: "leases that lapsed until then, ms"},
	{name: "start_until", typ: argNumber, doc: "runs that may start until then, ms"},
	{name: "skip_due", typ: argText, doc: "how many cursors to pass over, '' to read none"},
	{name: "skip_lapsed", typ: argText, doc: "how many lapsed leases to pass over, '' to read none"},
	{name: "skip_pending", typ: argText, doc: "how many pending runs to pass over, '' to read none"},
	{name: "most", typ: argInt, doc: "most of each"},
	{name: "skip_rows", typ: argText, doc: "how many rows of the outbox to pass over, '' to read no outbox, no cancel flags and no backfills"},
	{name: "most_rows", typ: argInt, doc: "most rows of the outbox"},
	{name: "both_ends", typ: argFlag, doc: "'1' to read its newest rows as well"},
}}

var define = verb{room: "define", script: "define",
	args: []arg{aNow, aSkew, aKeep, aKeepFor, {name: "epoch", typ: argText, doc: "of the promotion that sends the definitions, '' for a node's own definitions"}},
	forms: []form{{name: "item", args: []arg{
		aJob, aDigest,
		{name: "revision", typ: argTidied, doc: "of the caller"},
		{name: "cursor", typ: argOptional, doc: "first tick of the new schedule, ms, '' for none"},
		{name: "was_digest", typ: argText, doc: "expected digest, '' to create only"},
		{name: "was_cursor", typ: argOptional, doc: "expected cursor, ms, '' for none"},
		{name: "last", typ: argOptional, doc: "last tick of the old schedule that is due and will not run, ms"},
		{name: "count", typ: argNumber, doc: "how many ticks of the old schedule are due and will not run"},
		{name: "upcoming", typ: argOptional, doc: "first tick of the old schedule that the caller does not count as due, ms, '' for none"},
		{name: "old", typ: argTidied, doc: "the old schedule"},
		{name: "generation", typ: argTidied, doc: "of the caller, or the promoted one"},
		{name: "same", typ: argFlag, doc: "'1' when the schedule is the old one"},
		{name: "text", typ: argBytes, doc: "the definition, '' where it may be stored already"},
	}}},
}

var claim = verb{room: "claim", script: "claim",
	args: []arg{
		aNow, aSkew,
		{name: "node", typ: argText, doc: "id of the calling node"},
		{name: "name", typ: argText, doc: "the node's name"},
		aKeep, aKeepFor, aServer,
		{name: "short", typ: argMillis, numeric: true, doc: "how long a lease lasts at most until it is renewed, ms"},
	},
	forms: []form{
		{name: "plain", places: true, doc: "a tick without shards and without passes, and not the schedule's last one", args: []arg{
			{name: "terms", typ: argText, doc: "'ttl ms|overlap mode (s q r a)|most attempts|trigger'"},
			aJob,
			aDigest,
			{name: "run", typ: argText, doc: "id of the run to be"},
			{name: "tick", typ: argText, doc: "the tick to run, equal to the cursor that the caller has read, ms"},
			{name: "next", typ: argText, doc: "the cursor after the claim, ms"},
		}},
		{name: "other", doc: "any other, which begins with one letter", args: []arg{
			{name: "kind", typ: argText, doc: "t(ick), p(ending run), or s(hard)"},
			aJob,
			aDigest,
			{name: "run", typ: argText, doc: "id of the run to be, or of the pending one"},
			{name: "ttl", typ: argMillis, doc: "of the lease, ms"},
			{name: "mode", typ: argText, doc: "overlap mode: s q r a"},
			{name: "most", typ: argInt, doc: "how often the tick may be granted before a crash ends it"},
			{name: "bound", typ: argInt, doc: "of a tick: how many of the job's ticks are run; 0 for no bound"},
			{name: "from", typ: argText, doc: "of a tick: the cursor that the caller has read, ms; of a pending run: '', or the reason to record the run " +
				"as missed. The reason counts only for a follower's run that was never granted, and for a tick that was handed back"},
			{name: "passes", typ: argText, doc: "of a tick: the ticks that will not run, from 'from' on without a gap, each 'outcome,reason,first,last,count,next' and ended by ';'"},
			{name: "tick", typ: argOptional, doc: "of a tick: the tick to run, ms, '' for none"},
			{name: "next", typ: argOptional, doc: "of a tick: the cursor after the claim, ms, '' for none"},
			{name: "trigger", typ: argText, doc: "of a tick: why it runs"},
			{name: "parts", typ: argText, doc: "of a tick or pending run of a job with several shards: 'N,param,param,...', the params escaped; else ''"},
		}},
	},
}

var settle = verb{room: "settle", script: "settle",
	args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer},
	forms: []form{
		{name: "plain", places: true, doc: "a run that succeeded at its first try, without output or result", args: []arg{
			{name: "none", typ: argText, doc: "''"},
			aJob,
			{name: "run", typ: argText, doc: "its id"},
			{name: "token", typ: argText, doc: "its token, '' for any"},
			{name: "started", typ: argText, doc: "ms"},
			{name: "ended", typ: argText, doc: "ms"},
		}},
		{name: "other", doc: "any other", args: []arg{
			{name: "outcome", typ: argOutcome, doc: "the outcome's name"},
			aJob,
			{name: "run", typ: argText, doc: "its id"},
			aToken,
			{name: "reason", typ: argTidied, doc: "the reason of the outcome"},
			{name: "started", typ: argNumber, doc: "ms"},
			{name: "ended", typ: argNumber, doc: "ms"},
			{name: "pause", typ: argOptional, doc: "of a try that another node repeats: the wait before the next attempt, ms; the reporting node has counted the attempts"},
			{name: "tries", typ: argInt, doc: "how often the function was called"},
			{name: "error", typ: argText, doc: "the error's text"},
			{name: "output", typ: argBytes, doc: "the end of the run's output"},
			{name: "result", typ: argBytes, doc: "the run's result for its followers, JSON, or ''"},
			{name: "fresh", typ: argText, doc: "id of the next attempt, if the outcome wants one and attempts are left; of a run that succeeded, id of " +
				"the run whose checkpoint is deleted; or ''"},
		}},
	},
}
