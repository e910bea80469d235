package main

// key is one key, or one group of them, of a namespace.
type key struct {
	name, kind, holds, bound string
}

// keys are all keys of a namespace. They are spelt in ../keys.go and in scheduler/internal/roster/keys.go.
var keys = []key{
	{"{ns}:control", "hash", "format, number of partitions; the active generation, the number of promotions and the one under way; what a move has noted; the namespace's incarnation", "twelve fields"},
	{"{ns:p}:jobs", "hash", "job: its [entry](#entry)", "one a job"},
	{"{ns:p}:defs", "hash", "digest: a definition, JSON, with its job's name in it", "the current one a job, and what nodes announced within 30 days"},
	{"{ns:p}:due", "sorted set", "job by cursor", "one a job"},
	{"{ns:p}:runs", "hash", "run: its lease, see [run](#run)", "one a run in flight"},
	{"{ns:p}:leases", "sorted set", "run by the end of its lease", "one a run in flight"},
	{"{ns:p}:pending", "sorted set", "run by when it may start", "10,000 a partition, then triggers are refused"},
	{"{ns:p}:waiting", "hash", "run: its [pending](#pending) record, with a payload of 64 KiB at most; [tick](#tick) of a sharded job while it is open",
		"as `pending`, and a tick while it is open"},
	{"{ns:p}:history:JOB", "list", "[rows](#row) and [ranges](#range), oldest first", "`history.keep` rows of runs and 15 more, four times as many ranges, `history.keep_for`"},
	{"{ns:p}:recent", "list", "when rows were written, and of which jobs, oldest first: for `runs list`", "1,200 lines, of a call each; up to 200 jobs in a line"},
	{"{ns:p}:kept", "hash", "run: the last 64 KiB of its output. Under `p:` and the run its payload, under `s:` its checkpoint of 64 KiB at most, under `g:` its [progress](#progress) or [wait](#wait)", "all of a run is deleted with its row in the history, and its checkpoint also when the tick has succeeded"},
	{"{ns:p}:cancels", "hash", "run: who wants it ended, and why, see [cancel](#cancel)", "one a run in flight"},
	{"{ns:p}:pauses", "hash", "job: who paused it, and why, see [pause](#pause)", "one a job"},
	{"{ns:p}:backfills", "hash", "job: its [backfill](#backfill) that is under way", "one a job, 100 a partition"},
	{"{ns:p}:backfilled", "hash", "job: its last [backfill](#backfill) that has ended", "one a job"},
	{"{ns:p}:unique", "sorted set", "run asked for with a key, event that was told: by when it may come anew", "100,000 keys, `history.keep_for`; events for ten minutes"},
	{"{ns:p}:followers", "hash", "job: names of those that follow it, with commas", "256 a job"},
	{"{ns:p}:joins", "hash", "of a job that follows several others: its name: the ticks that it knows of, oldest first; with a tick: its [join](#join); with a tick and an upstream: that one's result",
		"1,000 ticks a job, `history.keep_for`"},
	{"{ns:p}:outbox", "sorted set", "[event](#event) or [success](#success) by when it was known", "10,000 a partition, then their ticks wait"},
	{"{ns:p}:anew", "hash", "job and digest: whether the job was made anew, and the cursor that nodes told of it; with `heard`, that cursor if the job stood there", "two a job, for a minute after it was made"},
	{"{ns:p}:chunks", "hash", "digest: some jobs, each with the digest of the definition in which nodes hold it", "leaves with the last announcement that names it"},
	{"{ns:p}:announced", "sorted set", "chunk, generation and revision of nodes that hold it, by when they last said so", "dropped after 30 days"},
	{"{ns:p}:confirm", "string", "nothing: written so that replicas have something to confirm, with `redis.confirm: replicas`, and to see whether a server takes writes",
		"one, for a second"},
	{"{ns:p}:gate", "string", "who makes new jobs, and whether a move has closed the partition, see [gate](#gate)", "one"},
	{"{ns:p}:incarnation", "string", "an id, another one each time that the partition was made or had lost records; with `@` and ms when nodes made it after a loss, and before that with `:` and the keys that lacked records, parted by `+`", "one"},
	{"{ns}:roster`, `{ns}:seen", "hash, sorted set", "node: its record; node by last beat", "dropped 5 s after the last beat"},
	{"{ns}:audit", "list", "what operators did, and when, oldest first: `1|ms|JSON`", "2,000 rows"},
	{"{ns}:notified", "hash", "job that is not well: what people were told of it; `:to TARGET`: what waits to be sent there; `:token` and `:looked`, JSON",
		"one a job that is not well, and a minute longer; 100 events a target, a week after its last use"},
	{"{ns}:catalog", "hash", "job that is stored at run time: `1|version|definition`", "one a stored job"},
	{"{ns}:catalogat", "sorted set", "job of the catalog by version", "one a stored job"},
	{"{ns}:catalogdropped", "sorted set", "job that was deleted from the catalog by version", "100,000, a day"},
	{"{ns}:handlers", "sorted set", "name of a handler, and what its payloads look like, by when a node last declared it", "dropped after 30 days"},
	{"{ns}:drains", "hash", "name of a node: who drained it, when and why", "1,000 names; it does not expire"},
	{"{ns}:sets`, `{ns}:sets:seen", "hash, sorted set", "digest: the chunks that a node holds, once however many nodes hold the same", "dropped when no beat names it any more"},
	{"{ns:lock:NAME}...", "string, hash", "a business lock and its token's state", "their time to live"},
	{"{ns:cron:GROUP:NAME}", "string", "the largest claimed tick of a robfig/cron entry, and its token: `locking/cronlock`", "two minutes and the interval of @every"},
}
