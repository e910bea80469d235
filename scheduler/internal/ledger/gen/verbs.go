package main

import "slices"

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
	aServer  = arg{name: "server", typ: argText, doc: "id of the epoch that the caller knows, '' for any"}
	aGap     = arg{name: "gap", typ: argText, doc: "'from,last,count': ticks that Redis has lost, to be recorded as missed; '' for none"}
	aText    = arg{name: "text", typ: argText, doc: "its text, '' to ask whether it is stored"}
)

// verbs are the scripts that are called often, or with many items: their arguments are generated. All others take JSON.
var verbs = slices.Concat(ofTicks, others)

// ofTicks are those on the way of each tick.
var ofTicks = []verb{sweep, claim, settle}

var others = []verb{
	define,
	{script: "unclaim", args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer}, forms: []form{{name: "item", args: []arg{aJob, aRun, aToken, aFresh}}}},
	{script: "reap", args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer}, forms: []form{
		{name: "item", args: []arg{aJob, aRun, {name: "beat", typ: argNumber, doc: "the beat that was seen"}, aFresh}},
	}},
	{script: "renew", args: []arg{aNow, aSkew, aServer}, forms: []form{{name: "item", places: true, args: []arg{
		{name: "run", typ: argText, doc: "id of the run"},
		{name: "token", typ: argText, doc: "its token, '' for any"},
		{name: "ttl", typ: argText, doc: "of the lease, ms"},
		{name: "progress", typ: argText, doc: "how far it is, '' if it has not said"},
	}}}},
	{script: "recall", args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer}, forms: []form{{name: "item", args: []arg{
		aJob, aDigest,
		{name: "cursor", typ: argNumber, doc: "the job's cursor before the failover, ms"},
		{name: "opened", typ: argOptional, doc: "the cursor after a tick that nodes have begun in shards, ms, where it stood before that one; else ''"},
		{name: "heard", typ: argFlag, doc: "'1' when the job stood there, so that all ticks before the cursor are accounted for"},
		{name: "sharded", typ: argFlag, doc: "'1' when ticks of the job are begun in shards, of which nodes know some each"},
		aGap,
	}}}},
	{script: "reassert", args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer}, forms: []form{{name: "item", args: []arg{
		aJob, aDigest, aRun,
		{name: "record", typ: argText, doc: "the run's record from the job on"},
		aGap,
		{name: "parts", typ: argText, doc: "of a shard, to open its tick anew if Redis has lost it: 'N,param,param,...'; else ''"},
		{name: "next", typ: argOptional, doc: "of a shard or a later attempt: the tick after the run's, ms, for all before may be lost; else ''"},
		{name: "ended", typ: argOptional, doc: "of a run whose end will be reported: when it ended, ms; else ''"},
	}}}},
	{script: "announce", args: []arg{
		aNow, aSkew,
		{name: "generation", typ: argText, doc: "of the nodes"},
		{name: "revision", typ: argTidied, doc: "of the nodes"},
	}, forms: []form{{name: "item", args: []arg{{name: "digest", typ: argText, doc: "of a chunk"}, aText}}}},
	{script: "current", args: []arg{
		{name: "digest", typ: argText, doc: "of a chunk"},
		{name: "revision", typ: argTidied, doc: "of the node"},
	}},
	{script: "store", forms: []form{{name: "item", args: []arg{{name: "digest", typ: argText, doc: "of a definition"}, aText}}}},
}

var sweep = verb{script: "sweep", args: []arg{
	{name: "due_until", typ: argNumber, doc: "cursors until then, ms"},
	{name: "lapsed_until", typ: argNumber, doc: "leases that lapsed until then, ms"},
	{name: "start_until", typ: argNumber, doc: "runs that may start until then, ms"},
	{name: "skip_due", typ: argText, doc: "how many cursors to pass over, '' not to read any"},
	{name: "skip_lapsed", typ: argText, doc: "the same of leases"},
	{name: "skip_pending", typ: argText, doc: "the same of runs"},
	{name: "most", typ: argInt, doc: "most of each"},
	{name: "skip_rows", typ: argText, doc: "how many rows of the outbox to pass over, '' to read neither those nor what is to be cancelled nor backfills"},
	{name: "most_rows", typ: argInt, doc: "most rows of the outbox"},
	{name: "both_ends", typ: argFlag, doc: "'1' to read its newest rows as well"},
}}

var define = verb{script: "define",
	args: []arg{aNow, aSkew, aKeep, aKeepFor, {name: "epoch", typ: argText, doc: "of the promotion that this is part of, '' for a node's own definitions"}},
	forms: []form{{name: "item", args: []arg{
		aJob, aDigest,
		{name: "revision", typ: argTidied, doc: "of the caller"},
		{name: "cursor", typ: argOptional, doc: "first tick of the new schedule, ms, '' for none"},
		{name: "was_digest", typ: argText, doc: "expected digest, '' to create only"},
		{name: "was_cursor", typ: argOptional, doc: "expected cursor, ms, '' for none"},
		{name: "last", typ: argOptional, doc: "last tick of the old schedule that nobody will run, ms"},
		{name: "count", typ: argNumber, doc: "how many there are of those"},
		{name: "upcoming", typ: argOptional, doc: "first tick of the old schedule after those, ms, '' for none"},
		{name: "old", typ: argTidied, doc: "the old schedule"},
		{name: "generation", typ: argTidied, doc: "of the caller, or that is promoted"},
		{name: "same", typ: argFlag, doc: "'1' when the schedule is the old one"},
		{name: "text", typ: argBytes, doc: "the definition, '' where it may be stored already"},
	}}},
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
			aDigest,
			{name: "run", typ: argText, doc: "id of the run to be"},
			{name: "tick", typ: argText, doc: "to run, and the cursor that the caller sees, ms"},
			{name: "next", typ: argText, doc: "where the cursor goes, ms"},
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
	args: []arg{aNow, aSkew, aKeep, aKeepFor, aServer},
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
			{name: "pause", typ: argOptional, doc: "of a try that another node makes again: how long the next attempt waits, ms; its node has counted the attempts"},
			{name: "tries", typ: argInt, doc: "how often the function was called"},
			{name: "error", typ: argText, doc: "the error's text"},
			{name: "output", typ: argBytes, doc: "the last of its output"},
			{name: "result", typ: argBytes, doc: "what it left for the jobs that follow, JSON, or ''"},
			{name: "fresh", typ: argText, doc: "id of the next attempt, if this end asks for one and there are attempts left; of a run that succeeded, id of the run whose " +
				"checkpoint goes; or ''"},
		}},
	},
}
