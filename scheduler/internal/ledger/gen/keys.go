package main

// key is one key, or one group of them, of a namespace.
type key struct {
	name, kind, holds, bound string
}

// keys are all keys of a namespace. They are spelt in ../keys.go and in
// scheduler/internal/roster/keys.go.
var keys = []key{
	{"{ns}:control", "hash", "format, number of partitions; the active generation, the number of promotions and the promotion under way; a move's note; the namespace's incarnation", "twelve fields"},
	{"{ns:p}:jobs", "hash", "job: its [entry](#entry)", "one a job"},
	{"{ns:p}:defs", "hash", "digest: a definition, JSON, with its job's name in it", "the current one a job, and the definitions that nodes announced within 30 days"},
	{"{ns:p}:due", "sorted set", "job by cursor", "one a job"},
	{"{ns:p}:runs", "hash", "run: its lease, see [run](#run)", "one a run in flight"},
	{"{ns:p}:leases", "sorted set", "run by the end of its lease", "one a run in flight"},
	{"{ns:p}:pending", "sorted set", "run by when it may start", "10,000 a partition, then triggers are refused"},
	{"{ns:p}:waiting", "hash", "run: its [pending](#pending) record, with a payload of 64 KiB at most; [tick](#tick) of a sharded job while it is open",
		"as `pending`, and a tick while it is open"},
	{"{ns:p}:history:JOB", "list", "[rows](#row) and [ranges](#range), oldest first", "`history.keep` rows of runs and 15 more, four times as many ranges, `history.keep_for`"},
	{"{ns:p}:recent", "list", "when rows were written, and of which jobs, oldest first: for `runs list`", "1,200 lines, of a call each; up to 200 jobs in a line"},
	{"{ns:p}:kept", "hash", "run: the last 64 KiB of its output. Under `p:` and the run its payload, under `s:` its checkpoint of 64 KiB at most, under `g:` its [progress](#progress) or [wait](#wait)", "all of a run is deleted with its row in the history, and its checkpoint also when the tick has succeeded"},
	{"{ns:p}:cancels", "hash", "run: author and reason of its cancel, see [cancel](#cancel)", "one a run in flight"},
	{"{ns:p}:pauses", "hash", "job: author and reason of its pause, see [pause](#pause)", "one a job"},
	{"{ns:p}:backfills", "hash", "job: its [backfill](#backfill) that is under way", "one a job, 100 a partition"},
	{"{ns:p}:backfilled", "hash", "job: its last [backfill](#backfill) that has ended", "one a job"},
	{"{ns:p}:unique", "sorted set", "run with a unique key, or delivered event: by the time from which the same may come anew", "100,000 keys, `history.keep_for`; events for ten minutes"},
	{"{ns:p}:followers", "hash", "job: names of its followers, with commas", "256 a job"},
	{"{ns:p}:joins", "hash", "for a job with several upstreams, three kinds of fields. Job: its undecided ticks, oldest first; job and tick: its [join](#join); job, tick and upstream: the upstream's result",
		"1,000 ticks a job, `history.keep_for`"},
	{"{ns:p}:outbox", "sorted set", "[event](#event) or [success](#success) by the time of the tick's end", "10,000 a partition, then their ticks wait"},
	{"{ns:p}:anew", "hash", "job and digest: whether the job was made anew, and the cursor that nodes reported; with `heard`, that cursor if the job stood there", "two a job, for a minute after it was made"},
	{"{ns:p}:chunks", "hash", "digest: some jobs, each with the digest of the definition in which nodes hold it", "leaves with the last announcement that names it"},
	{"{ns:p}:announced", "sorted set", "chunk, generation and revision of nodes that hold it, by their last announcement", "dropped after 30 days"},
	{"{ns:p}:confirm", "string", "nothing: written so that replicas have a write to confirm, with `redis.confirm: replicas`, and to see whether a server takes writes",
		"one, for a second"},
	{"{ns:p}:gate", "string", "the generation that makes new jobs, and whether a move has closed the partition, see [gate](#gate)", "one"},
	{"{ns:p}:incarnation", "string", "an id, another one each time that the partition was made or had lost records; with `@` and ms when nodes made it after a loss, and before that with `:` and the keys that lacked records, parted by `+`", "one"},
	{"{ns}:roster`, `{ns}:seen", "hash, sorted set", "node: its record; node by last beat", "dropped 5 s after the last beat"},
	{"{ns}:audit", "list", "operators' actions, oldest first: `1|ms|JSON`", "2,000 rows"},
	{"{ns}:notified", "hash", "job that is not well: its events that were sent; `:to TARGET`: the target's waiting messages; `:token` and `:looked`, JSON",
		"one a job that is not well, and a minute longer; 100 events a target, a week after its last use"},
	{"{ns}:catalog", "hash", "job that is stored at run time: `1|version|definition`", "one a stored job"},
	{"{ns}:catalogat", "sorted set", "job of the catalog by version", "one a stored job"},
	{"{ns}:catalogdropped", "sorted set", "job that was deleted from the catalog by version", "100,000, a day"},
	{"{ns}:handlers", "sorted set", "name of a handler, and the form of its payloads, by the last declaration of a node", "dropped after 30 days"},
	{"{ns}:drains", "hash", "name of a node: author, time and reason of its drain", "1,000 names; it does not expire"},
	{"{ns}:sets`, `{ns}:sets:seen", "hash, sorted set", "digest: the chunks that a node holds, once for all nodes that hold the same", "dropped when no beat names it any more"},
	{"{ns:lock:NAME}...", "string, hash", "a business lock and its token's state", "their time to live"},
	{"{ns:cron:GROUP:NAME}", "string", "the largest claimed tick of a robfig/cron entry, and its token: `locking/cronlock`", "two minutes and the interval of @every"},
}
