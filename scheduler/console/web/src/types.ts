// Written by types.mjs from scheduler/ops/http/openapi.json. Do not edit.

export interface ActionView {
  /** in the words of the command: "jobs pause" */
  action: string
  at: string | null
  /** the options, in words */
  detail: string
  /** why it was not carried out; "" when it was */
  error: string
  reason: string
  /** the job, run, node, lock, generation or file */
  target: string
  /** cli, api or console */
  via: string
  who: string
}

export interface Asked {
  run: string
}

export interface BackfillPlan {
  /** the first ticks, three at most */
  first: (string)[]
  /** "" for a dry run */
  id: string
  /** the last ticks, in order, without the ticks of First */
  last: (string)[]
  ticks: number
}

export interface BackfillView {
  author: string
  /** when it was requested */
  began: string
  /** who cancelled it */
  by?: string
  /** the same by outcome */
  counts: Record<string, number>
  /** when it ended, with all its runs */
  end?: string | null
  /** ticks that have ended */
  ended: number
  /** when it ends if it goes on as it did; absent before the first tick has ended */
  eta?: string | null
  from: string
  id: string
  job: string
  /** no tick from here on has a run yet; absent when all have */
  next?: string | null
  parallel: number
  /** why it was cancelled */
  reason?: string
  /** ticks whose runs wait or go */
  running: number
  /** going; cancelled, also while runs of it have not ended; done */
  state: string
  /** in the range when it began */
  ticks: number
  to: string
}

export interface Cancelled {
  did: string
}

export interface ChangeCounts {
  schedules: number
  settings: number
}

export interface Checked {
  jobs: number
  rows: number
  ticks: number
}

export interface ClockChange {
  at: string
  /** what the clock shows before, RFC 3339 */
  from: string
  /** the first ticks with a note there, three at most */
  ticks: (TickView)[]
  /** and from then on */
  to: string
}

export interface DrainView {
  author: string
  reason: string
  since: string | null
}

export interface EndView {
  /** 0 of a range */
  attempt: number
  /** how many ticks */
  count: number
  duration_ms: number
  outcome: string
  reason: string
  /** "" of a range */
  run: string
  /** null when it did not run */
  started?: string | null
  tick: string | null
  /** of a range: its last tick */
  until?: string | null
}

export interface FaultView {
  /** spelt as in config.yaml, such as retry.max */
  field: string
  /** the fault, and the cure */
  text: string
}

export interface Finding {
  /** Evidence are the records concerned, rendered; only for findings from the books alone. */
  evidence: (string)[]
  job: string
  /** P1 to P7, or Unsound */
  promise: string
  what: string
}

export interface GenerationView {
  /** Added are jobs that it has and that no generation runs now. Removed are jobs that it does not have. These and the following fields compare it with the active definitions of all generations. */
  added: Names
  /** Schedules are jobs that would run at other times, Settings those in which something else would change. Changed counts both; the lists have the first 20. */
  changed: ChangeCounts
  /** Jobs is how many jobs it has, in the definitions that its living nodes hold or, without such nodes, that are stored for it. Running is how many jobs it runs now; jobs that none of its nodes has do not count. */
  jobs: number
  name: string
  /** Nodes are the names of its living nodes, draining ones included. */
  nodes: Names
  /** Promotion is the promotion under way, while State is promoting. */
  promotion?: PromotionView | null
  removed: Names
  running: number
  schedules: (ScheduleChange)[]
  settings: (SettingsChange)[]
  state: string
  /** Unsettled are jobs that its living nodes have and whose definitions are not stored yet, because the nodes have just started. */
  unsettled: Names
}

export interface GraphJob {
  /** the jobs that it follows, which need not be there any more */
  after: (string)[]
  followers: (string)[]
  /** the latest tick accounted for */
  last: string | null
  /** of the run or tick that was recorded last; "" for none */
  last_outcome: string
  name: string
  /** the run that holds it, granted or pending, "" for none */
  open: string
  paused: boolean
  /** "" for a follower */
  schedule: string
  time_zone: string
  /** after which ends of theirs it runs; "" for a job with a schedule */
  when: string
}

export interface HandlerView {
  name: string
  /** Shape is the form of the payloads, as JSON: the name of a type of JSON, {"list": SHAPE}, {"map": SHAPE} or {"fields": {NAME: SHAPE}}; "" for any payload. */
  shape: string
}

export interface JobView {
  /** in place of a schedule: the jobs whose ticks this job follows */
  after: (string)[]
  /** which of the ticks that no node claimed in time run later */
  catch_up: "latest" | "all" | "none"
  /** how many of the late ticks run, the newest ones; default 10 */
  catch_up_max: number
  /** Counts is how many ticks and runs ended so, by the words of RunView.Outcome, since the job was first registered. */
  counts: Record<string, number>
  /** no tick after this instant */
  end_at: string | null
  /** days without ticks: dates, ranges of dates, and calendars of config.yaml */
  except: (string)[]
  expect: { success_within: string | null } | null
  generation: string
  /** the locker of another store whose lock each run takes too */
  guard: string
  /** the handler that the runs of a stored job call */
  handler: string
  /** HistoryFrom is the tick with which the recorded history begins, and the earliest to which the cursor can be set back; null for a job that follows another. */
  history_from: string | null
  /** moves all ticks by one offset below this duration; the job's name decides the offset; a duration such as 90s, 5m or 2d, 0s to 24h */
  jitter: string | null
  /** the labels that a node must have to run the job */
  labels: Record<string, string>
  /** the latest tick accounted for, null before the first */
  last: string | null
  /** LastOutcome is how the run or tick ended that was recorded last, "" before the first. */
  last_outcome: string
  /** LastSuccess is when a run last succeeded, however long that is ago; null where none did. */
  last_success: string | null
  /** UnknownFormat is how many rows of the history this version does not understand; as TrimmedTo. */
  left_alone?: number
  limit: { group: string; max: number } | null
  /** the owner of a set of stored jobs, such as a file of them */
  managed_by: string
  /** the number of granted ticks after which the job has no more; 0 is no bound */
  max_runs: number
  /** names the job in the whole namespace */
  name: string
  /** the next tick that runs, not before the end of a pause; null for none */
  next: string | null
  /** why no living node can run it, "" when one can */
  no_node?: string
  /** what follows a run whose node died, lost its lease, or cancelled the run in a drain */
  on_crash: "record" | "rerun"
  /** what the node does with a stalled run */
  on_stall: "tell" | "cancel"
  /** the only days with ticks, in the form of except */
  only: (string)[]
  /** the run that holds it, granted or pending, "" for none */
  open: string
  /** no living node of its generation holds it: it stands still until one does */
  orphan: boolean
  /** what happens to a tick while another run of the job goes on */
  overlap: "skip" | "queue" | "replace" | "allow"
  /** Owner is the node that goes first, of a sharded or raced job one of them; "" when no living node can run it. In a namespace of more than 1,000 jobs it is the node that hashing prefers, and another one for a few jobs in a thousand where nodes are many. */
  owner: string
  /** one text for each shard */
  params: (string)[]
  /** Pause has the details while the job is paused. */
  pause?: PauseView | null
  paused: boolean
  /** the payload of each run without a payload of its own */
  payload: unknown
  /** which node claims a tick first: the job's owner, or all at once */
  placement: "owner" | "race"
  /** Ran is, of a job with MaxRuns, how many of its ticks were granted. From MaxRuns on the job is finished: it has no further ticks. */
  ran?: number
  /** the most further attempts of a tick; default 3 */
  rerun_max: number
  retry: { backoff: string | null; max: number; max_backoff: string | null; on: "same_node" | "other_node"; try_timeout: string | null } | null
  revision: string
  /** the cron expression, @every, or a word such as @daily */
  schedule: string
  /** the number of parts of each tick, which run on different nodes; default 1 */
  shards: number
  /** how long a run may make no progress before it counts as stalled; a duration such as 90s, 5m or 2d, at least 1s */
  stall_after: string | null
  standby?: (string)[]
  /** no tick before this instant */
  start_at: string | null
  /** how late a tick may start; a later one is recorded as missed; a duration such as 90s, 5m or 2d */
  start_within: string | null
  /** when it was stored, of a job that is stored at run time; null for one of a program */
  stored: string | null
  /** Superseded are living nodes of the job's generation that hold another definition than the stored one; Standby are nodes of another generation that hold a definition of their own; by name, the first 20. */
  superseded?: (string)[]
  /** the zone of the schedule, such as Europe/Berlin; default UTC */
  time_zone: string
  /** ends a run after this time, all tries and waits included; a duration such as 90s, 5m or 2d */
  timeout: string | null
  /** TrimmedTo is HistoryFrom when rows before it have been dropped already, else null. Reading it takes the whole history: only GetJob fills it in. */
  trimmed_to: string | null
  /** the lease time of a run: after this time, other nodes record a dead node's run; a duration such as 90s, 5m or 2d, 3s to 1h; default 15s */
  ttl: string | null
  /** after which ends of the other jobs' ticks this job runs */
  when: "succeeded" | "failed" | "any"
}

export interface LockView {
  /** of one lock: the other grants of its name */
  also?: (LockView)[]
  /** the holder's own name for itself */
  holder: string
  /** LockKind or RunKind */
  kind: string
  /** of a read-write lock: "read" or "write"; else "" */
  mode: string
  /** of a run: its job, "job#2" for a shard */
  name: string
  node: string
  owner: string
  /** of a semaphore: how many there are, of which this holder has one; else 0 */
  permits: number
  /** its holder has been requested to release it */
  revoked: boolean
  run: string
  token: string
  /** until the lock is free, unless it is renewed; 0 of a lock: not known */
  ttl_ms: number
  waiters: number
}

export interface Me {
  name: string
  /** which node answers */
  node: string
  /** Open reports that no credentials are needed: every client is an operator. */
  open: boolean
  role: string
  /** of its program */
  version: string
}

export interface Names {
  count: number
  /** 20 at most */
  first: (string)[]
}

export interface Namespace {
  /** Closed is where a move has taken the namespace; "" when none has closed it here. */
  closed: string
  name: string
  /** Redis' time, by which ticks are due */
  now: string
}

export interface NextView {
  job: string
  tick: string
}

export interface NodeView {
  /** Redis' clock minus the node's */
  clock_offset_ms: number
  /** ConfigRefused is set when the node has refused a change of its configuration, and goes on with the jobs that it had. */
  config_refused?: RefusedView | null
  /** Drain is who drained the node's name, and why. State changes to draining with the node's next heartbeat. */
  drain?: DrainView | null
  generation: string
  id: string
  jobs: number
  name: string
  owned: number
  revision: string
  running: number
  seen: string | null
  standby: number
  started: string | null
  /** active, standby, draining, gone */
  state: string
  /** Superseded is how many of the node's jobs are stored in another definition of its generation, Standby how many another generation runs. The node claims neither. Only jobs that living nodes hold in several definitions are counted. */
  superseded: number
  /** Trouble is why the node claims nothing, or not everything, although it is not drained, as in /readyz. */
  trouble?: string
  version: string
  /** version of the time zone rules that its schedules follow */
  zone_data: string
}

export interface Overdue {
  count: number
  job: string
  tick: string
  until: string
  why: string
}

export interface Overview {
  /** Ended is how many ticks and runs have ended so since, by the words of RunView.Outcome. */
  ended: Record<string, number>
  /** Failing are jobs whose latest run since then did not succeed. */
  failing: Names
  jobs: number
  /** Late are jobs with a tick that was due more than 2 s ago and that no node has claimed, of the 100 jobs that are due first. */
  late: Names
  /** Next are the next ticks, of 12 jobs at most. */
  next: (NextView)[]
  /** Redis' time */
  now: string
  paused: number
  /** requested or due, and not granted yet */
  pending: number
  running: number
  /** Since is how far back Ended and Failing go: a day, or less where so much has ended that no more is read. */
  since: string
}

export interface PauseView {
  author: string
  reason: string
  since: string | null
  /** null: until an operator resumes the job */
  until: string | null
}

export interface Preview {
  changes: (ClockChange)[]
  /** Clock describes the ticks when the clock of the zone is set, "" where it never is, and Changes are the next two times that it is set. */
  clock: string
  /** Faults are the faults of the schedule; all other fields are empty then. */
  faults: (FaultView)[]
  /** the schedule without H */
  resolved: string
  ticks: (TickView)[]
  time_zone: string
  /** the schedule in plain English, and where crontab(5) reads it otherwise */
  words: string
}

export interface Problem {
  /** for programs: "redis_evicts", "job_no_node" */
  code: string
  /** Count is 0, or how many more of the same code and severity there are, which are not listed one by one. */
  count?: number
  /** the remedy */
  cure: string
  /** of the subject: job, node, server, key, generation or namespace */
  kind: string
  /** the subject's name; "" of many */
  on: string
  /** warning or error */
  severity: string
  /** the fault */
  text: string
}

export interface ProblemDetails {
  code: "bad_request" | "closed" | "cross_origin" | "forbidden" | "held" | "internal" | "lost" | "method_not_allowed" | "no_events" | "refused" | "timeout" | "too_large" | "too_many" | "unauthorized" | "unknown_format" | "unknown_host" | "unknown_job" | "unknown_lock" | "unknown_namespace" | "unknown_node" | "unknown_path" | "unknown_run" | "unreachable" | "unsupported_media_type"
  /** what is wrong, and what to do */
  detail: string
  /** what is wrong with single settings, where the error is about settings */
  faults?: (FaultView)[]
  status: number
  title: string
  type: string
}

export interface ProgressView {
  /** when the run reported it */
  at: string | null
  done: number
  /** End is when the run will end if it goes on at the rate since its first report; null when not known. */
  end: string | null
  note: string
  /** 0: not known */
  total: number
}

export interface Promotion {
  cancelled: number
  created: Names
  /** filled in by Begin */
  epoch: number
  generation: string
  left_alone: Names
  left_out: Names
  orphaned: Names
  /** of job names, as in path.Match; "" for all jobs */
  pattern: string
  /** Begin found that the same had begun */
  resumed: boolean
  switched: Names
  was: string
}

export interface PromotionView {
  cancel_running: boolean
  epoch: number
  pattern: string
}

export interface RefusedView {
  /** of the first refusal since the node had its configuration */
  at: string | null
  text: string
}

export interface Release {
  /** "told", "cancelled", "taken" or "lapses" */
  did: string
  /** as it was held */
  lock: LockView
}

export interface Rests {
  rests: boolean
}

export interface Rewound {
  tick: string
}

export interface RunView {
  attempt: number
  /** of a range: how many ticks; see Mark for 0 */
  count?: number | null
  due: string | null
  /** of a running run: up to now */
  duration_ms: number
  ended: string | null
  error: string
  generation: string
  job: string
  lag_ms: number
  /** NextAttempt is the run of the following attempt, after a crash or by a rerun. Output is the end of the run's output, up to a second old while the run goes on, and Payload the payload of a manual run. Only GetRun and WaitRun read these. */
  next_attempt?: string
  node: string
  /** NotBefore is the earliest that a pending run may start. */
  not_before?: string | null
  /** Note belongs to Reason: the schedule that was replaced, the outcome of the job followed, who wants a running run ended; of ticks skipped for overlap, that a dead node's lease held the job, or what the run waited for that held it. */
  note?: string
  of?: string
  /** "running", also of a pending run */
  outcome: string
  output?: string
  param?: string
  /** any JSON */
  payload?: unknown
  /** Progress is how far a running run is; null without a report. */
  progress?: ProgressView | null
  /** Reason begins with "pending", and names the cause, while the run has not been granted yet. Of a granted run Reason may be the cause for which it waits before it starts. */
  reason: string
  run: string
  shard: number
  shards: number
  /** null of a pending run, and while the run waits for its tick */
  started: string | null
  /** of a range: its first tick */
  tick: string | null
  token: string
  tries: number
  trigger: string
  /** of a range: its last tick */
  until?: string | null
  /** Whole reports that this is a tick of a sharded job as a whole; Of is, of a shard, its tick's id, and Param its parameter. */
  whole?: boolean
}

export interface ScheduleChange {
  job: string
  new: ScheduleView
  now: ScheduleView
  only_new: (string)[]
  /** OnlyNow and OnlyNew are the instants of the next 24 hours that only one of the schedules has: the first 5 of each. */
  only_now: (string)[]
}

export interface ScheduleView {
  /** the jobs that it follows, with commas; such a job has no schedule */
  after: string
  schedule: string
  /** in the next 24 hours */
  ticks: number
  time_zone: string
}

export interface SettingsChange {
  /** by their names: ttl, retry.max, ... */
  fields: (string)[]
  job: string
}

export interface StoredJob {
  /** in place of a schedule: the jobs whose ticks this job follows */
  after?: (string)[]
  /** which of the ticks that no node claimed in time run later */
  catch_up?: "latest" | "all" | "none"
  /** how many of the late ticks run, the newest ones; default 10 */
  catch_up_max?: number
  /** no tick after this instant */
  end_at?: string
  /** days without ticks: dates, ranges of dates, and calendars of config.yaml */
  except?: (string)[]
  expect?: { success_within?: string }
  /** the locker of another store whose lock each run takes too */
  guard?: string
  /** the handler that the runs of a stored job call */
  handler: string
  /** moves all ticks by one offset below this duration; the job's name decides the offset; a duration such as 90s, 5m or 2d, 0s to 24h */
  jitter?: string
  /** the labels that a node must have to run the job */
  labels?: Record<string, string>
  limit?: { group?: string; max?: number }
  /** the owner of a set of stored jobs, such as a file of them */
  managed_by?: string
  /** the number of granted ticks after which the job has no more; 0 is no bound */
  max_runs?: number
  /** names the job in the whole namespace */
  name: string
  /** what follows a run whose node died, lost its lease, or cancelled the run in a drain */
  on_crash?: "record" | "rerun"
  /** what the node does with a stalled run */
  on_stall?: "tell" | "cancel"
  /** the only days with ticks, in the form of except */
  only?: (string)[]
  /** what happens to a tick while another run of the job goes on */
  overlap?: "skip" | "queue" | "replace" | "allow"
  /** one text for each shard */
  params?: (string)[]
  /** the payload of each run without a payload of its own */
  payload?: unknown
  /** which node claims a tick first: the job's owner, or all at once */
  placement?: "owner" | "race"
  /** the most further attempts of a tick; default 3 */
  rerun_max?: number
  retry?: { backoff?: string; max?: number; max_backoff?: string; on?: "same_node" | "other_node"; try_timeout?: string }
  /** the cron expression, @every, or a word such as @daily */
  schedule?: string
  /** the number of parts of each tick, which run on different nodes; default 1 */
  shards?: number
  /** how long a run may make no progress before it counts as stalled; a duration such as 90s, 5m or 2d, at least 1s */
  stall_after?: string
  /** no tick before this instant */
  start_at?: string
  /** how late a tick may start; a later one is recorded as missed; a duration such as 90s, 5m or 2d */
  start_within?: string
  /** the zone of the schedule, such as Europe/Berlin; default UTC */
  time_zone?: string
  /** ends a run after this time, all tries and waits included; a duration such as 90s, 5m or 2d */
  timeout?: string
  /** the lease time of a run: after this time, other nodes record a dead node's run; a duration such as 90s, 5m or 2d, 3s to 1h; default 15s */
  ttl?: string
  /** of its latest change: Redis' time, or a little more; each change has a later one */
  version?: string
  /** after which ends of the other jobs' ticks this job runs */
  when?: "succeeded" | "failed" | "any"
}

export interface TickView {
  /** in the schedule's zone, RFC 3339 */
  local: string
  /** the effect of a daylight-saving change: gap or fold, "" for none */
  note: string
  tick: string
  /** the note in words */
  words: string
}

export interface UnknownFormat {
  key: string
  what: string
}

export interface Verification {
  checked: Checked
  /** records that this version cannot read */
  left_alone: (UnknownFormat)[]
  /** Overdue are ticks of jobs that no living node can run, so no node will record them soon. */
  overdue: (Overdue)[]
  /** Unverified are the jobs, by name, that could not be checked, because their entry, definition or history cannot be read. */
  unverified: (string)[]
  violations: (Finding)[]
}
