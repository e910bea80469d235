package spec

import "time"

const (
	ms   = int64(time.Millisecond)
	hour = int64(time.Hour)
	day  = 24 * hour
)

const (
	noHandler = "belongs to a Handler, and the jobs of a plan have functions of their own; leave it out"
	noPermit  = "how long a run waits for a permit cannot be judged; leave the limit out"
	whichDue  = "which ticks are due"
	goesOn    = "nothing: a run that waits goes on"
)

// table has the settings in the order of documents, which is the order of stored definitions too: a
// digest depends on it.
var table = [...]Setting{
	{Name: "name", Field: "Name", Kind: Name, Required: true, Sentence: "names the job in the whole namespace", Judged: "names the job in all evidence", always: true},

	{Name: "schedule", Field: "Schedule", Kind: Text, Ticks: true, Sentence: "the cron expression, @every, or a word such as @daily", Judged: whichDue, always: true},
	{Name: "time_zone", Field: "TimeZone", Kind: Text, Default: "UTC", Ticks: true, Sentence: "the zone of the schedule, such as Europe/Berlin", Judged: whichDue, always: true},
	{Name: "except", Field: "Except", Kind: Texts, Unscheduled: true, Ticks: true, Sentence: "days without ticks: dates, ranges of dates, and calendars of config.yaml", Judged: whichDue},
	{Name: "only", Field: "Only", Kind: Texts, Unscheduled: true, Ticks: true, Sentence: "the only days with ticks, in the form of except", Judged: whichDue},
	{Name: "start_at", Field: "StartAt", Kind: Instant, Unscheduled: true, Ticks: true, Sentence: "no tick before this instant", Judged: whichDue},
	{Name: "end_at", Field: "EndAt", Kind: Instant, Unscheduled: true, Ticks: true, Sentence: "no tick after this instant", Judged: whichDue},
	{Name: "jitter", Field: "Jitter", Kind: Duration, Max: day, Unscheduled: true, Ticks: true, Sentence: "moves all ticks by one offset below this duration; the job's name decides the offset", Judged: whichDue},
	{Name: "max_runs", Field: "MaxRuns", Kind: Count, Max: 1_000_000_000, Unscheduled: true, Sentence: "the number of granted ticks after which the job has no more; 0 is no bound", Judged: "how many ticks are granted"},

	{Name: "overlap", Field: "Overlap", Kind: Word, Words: []string{"skip", "queue", "replace", "allow"}, Sentence: "what happens to a tick while another run of the job goes on", Judged: "which runs overlap, and which ticks are skipped"},
	{Name: "catch_up", Field: "CatchUp", Kind: Word, Words: []string{"latest", "all", "none"}, Unscheduled: true, Sentence: "which of the ticks that no node claimed in time run later", Judged: "which late ticks run, and which are recorded as missed"},
	{Name: "catch_up_max", Field: "CatchUpMax", Kind: Count, Min: 1, Max: 10_000, Default: "10", With: "catch_up: all", Sentence: "how many of the late ticks run, the newest ones", Judged: "how many late ticks run"},
	{Name: "start_within", Field: "StartWithin", Kind: Duration, Sentence: "how late a tick may start; a later one is recorded as missed", Judged: "how late a tick may start, and which are recorded as missed"},
	{Name: "on_crash", Field: "OnCrash", Kind: Word, Words: []string{"record", "rerun"}, Sentence: "what follows a run whose node died, lost its lease, or cancelled the run in a drain", Judged: "whether another attempt follows"},
	{Name: "rerun_max", Field: "RerunMax", Kind: Count, Min: 1, Max: 100, Default: "3", With: "on_crash: rerun", Sentence: "the most further attempts of a tick", Judged: "how many attempts follow"},
	{Name: "timeout", Field: "Timeout", Kind: Duration, Sentence: "ends a run after this time, all tries and waits included", Judged: "when a run may end as timed out"},
	{Name: "stall_after", Field: "StallAfter", Kind: Duration, Min: int64(time.Second), Sentence: "how long a run may make no progress before it counts as stalled", Judged: "when a run may end as stalled",
		hint: "a node checks its runs each second"},
	{Name: "on_stall", Field: "OnStall", Kind: Word, Words: []string{"tell", "cancel"}, With: "stall_after", Sentence: "what the node does with a stalled run", Judged: "whether a run may end as stalled"},
	{Name: "ttl", Field: "TTL", Kind: Duration, Min: int64(3 * time.Second), Max: hour, Default: "15s", Sentence: "the lease time of a run: after this time, other nodes record a dead node's run", Judged: "how long the effects of a fault last", always: true},

	{Name: "retry.max", Field: "Retry.Max", Kind: Count, Max: 100, Sentence: "how often a failed function is called again", Judged: "how many tries and attempts there are"},
	{Name: "retry.backoff", Field: "Retry.Backoff", Kind: Duration, Min: ms, Max: day, Default: "1s", With: "retry.max", Sentence: "the wait before the second try; it doubles with each further try", Judged: goesOn},
	{Name: "retry.max_backoff", Field: "Retry.MaxBackoff", Kind: Duration, Min: ms, Max: day, Default: "1m", With: "retry.max", Sentence: "the longest wait", Judged: goesOn},
	{Name: "retry.try_timeout", Field: "Retry.Timeout", Kind: Duration, With: "retry.max", Sentence: "ends each try after this time", Judged: "nothing: a try may end at any time", stored: "retry_timeout_ms"},
	{Name: "retry.on", Field: "Retry.On", Kind: Word, Words: []string{"same_node", "other_node"}, With: "retry.max", Sentence: "where a further try is made", Judged: "whether further attempts follow a failure"},

	{Name: "shards", Field: "Shards", Kind: Count, Min: 1, Max: 1024, Default: "1", Sentence: "the number of parts of each tick, which run on different nodes", Judged: "how many parts a tick has", unstored: "1"},
	{Name: "params", Field: "Params", Kind: Texts, Sentence: "one text for each shard", Judged: "nothing: the function gets them", flag: "param"},
	{Name: "placement", Field: "Placement", Kind: Word, Words: []string{"owner", "race"}, Sentence: "which node claims a tick first: the job's owner, or all at once", Judged: "nothing: any node may be the first to claim"},
	{Name: "labels", Field: "Labels", Kind: Labels, Max: 64, Sentence: "the labels that a node must have to run the job", Judged: "which nodes may run the job, and whose faults excuse a late start", flag: "label"},
	{Name: "after", Field: "After", Kind: Names, Max: 16, Ticks: true, Sentence: "in place of a schedule: the jobs whose ticks this job follows", Judged: "which ticks are due, and when"},
	{Name: "when", Field: "When", Kind: Word, Words: []string{"succeeded", "failed", "any"}, With: "after", Ticks: true, Sentence: "after which ends of the other jobs' ticks this job runs", Judged: "which ends of the upstreams' tick make one due"},
	{Name: "limit.group", Field: "Limit.Group", Kind: Name, Sentence: "the group of jobs whose runs at once are bounded in the whole cluster", Unjudged: noPermit},
	{Name: "limit.max", Field: "Limit.Max", Kind: Count, Min: 1, Max: 1000, With: "limit.group", Sentence: "the most runs at once in the group; all its jobs give the same", Unjudged: noPermit},
	{Name: "guard", Field: "Guard", Kind: Name, Sentence: "the locker of another store whose lock each run takes too", Unjudged: "a lock in another store cannot be judged; leave it out"},

	{Name: "handler", Field: "Handler", Kind: Name, Handled: true, Sentence: "the handler that the runs of a stored job call", Unjudged: "the jobs of a plan have functions of their own; give the job a Func"},
	{Name: "payload", Field: "Payload", Kind: JSON, Max: 16 << 10, With: "handler", Handled: true, Sentence: "the payload of each run without a payload of its own", Unjudged: noHandler},
	{Name: "managed_by", Field: "ManagedBy", Kind: Name, With: "handler", Handled: true, Sentence: "the owner of a set of stored jobs, such as a file of them", Unjudged: noHandler},

	{Name: "expect.success_within", Field: "Expect.SuccessWithin", Kind: Duration, Min: ms, Max: 366 * day, Sentence: "the longest time without a run that succeeded, before the job counts as unwell", Judged: "nothing: a plan sends no notifications",
		stored: "success_within_ms", flag: "success-within"},
}
