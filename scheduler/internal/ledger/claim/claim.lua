-- Claims a batch. Each item is the next tick of a job (kind t), a pending run (kind p), or a shard
-- of an open tick, which is a pending run as well (kind s), and gets its own answer. A claim that
-- the same node repeats with the same run id gives the same grant. A sharded job's tick or pending
-- run is not granted but opened: its shards are pending from then on.
-- keys: jobs due runs leases pending waiting kept recent cancels outbox followers gate incarnation histories
-- Returns {'clock', redis ms} and does nothing when the caller's clock is wrong, {'server', id}
-- when the caller is of another epoch. Else first one text: for each item, the token of a plain
-- tick that was granted for a lease's first period, or '', parted by commas. Then the server's
-- clock, ms, and for each item whose text is '' four values: word, token, value, record
--   granted     token, ms left, record of the run (kind t: its attempt, '' for 1)
--   opened      '', cursor, tick     the tick is open, by this claim or by another one of the same
--                                    tick: the id of its shard i is tick .. '.' .. i
--   skipped     '', cursor, ''       another run holds the job: the tick was recorded as
--                                    skipped(overlap)
--   passed      '', cursor, ''       no run: the passes were recorded; for a pending run its
--                                    outcome was recorded and is the record here, 'outcome,reason';
--                                    'max_runs' when the job has had as many runs as its bound
--                                    allows
--   stale       '', cursor, 'pause|busy'   the stored cursor is another one, passes or tick do
--                                    not fit these windows, or the pending run is gone: plan again
--   early       '', redis ms, ''     the tick is not due in the next 500 ms, or a passed tick is
--                                    not due yet
--   held        '', run, ''          another run holds the job, and the tick has to wait or is not
--                                    due: claim again; in the run's place: 'a pause' when a pause
--                                    holds a pending run, 'full outbox' when too many events wait
--                                    for followers, 'full partition' when too many runs wait
--   superseded  '', digest, ''       another definition is the stored one
--   closed      '', 'state|move|words', ''   a move has closed the partition: no grants
--   unknown     '', '', ''           no such job
--   foreign     '', '', ''           a record that this version cannot read
-- needs: token lib/base lib/epoch lib/gate
-- ARGV, written by gen from verbs.go:
--   now        the caller's idea of Redis' time, ms, 0 for none
--   skew       tolerated difference, ms
--   node       id of the calling node
--   name       the node's name
--   keep       rows to keep
--   keep_for   age to keep, ms
--   server     id of the caller's epoch, '' for any
--   short      how long a lease lasts at most until it is renewed, ms
-- then for each item, if it is a tick without shards and without passes, and not the schedule's last one:
--   terms      'ttl ms|overlap mode (s q r a)|most attempts|trigger'
--   job        the job's name
--   digest     of the caller's definition
--   run        id of the run to be
--   tick       the tick to run, equal to the cursor that the caller has read, ms
--   next       the cursor after the claim, ms
-- then for each item, if it is any other, which begins with one letter:
--   kind       t(ick), p(ending run), or s(hard)
--   job        the job's name
--   digest     of the caller's definition
--   run        id of the run to be, or of the pending one
--   ttl        of the lease, ms
--   mode       overlap mode: s q r a
--   most       how often the tick may be granted before a crash ends it
--   bound      of a tick: how many of the job's ticks are run; 0 for no bound
--   from       of a tick: the cursor that the caller has read, ms; of a pending run: '', or the reason to
--              record the run as missed. The reason counts only for a follower's run that was never granted, and for a
--              tick that was handed back
--   passes     of a tick: the ticks that will not run, from 'from' on without a gap, each
--              'outcome,reason,first,last,count,next' and ended by ';'
--   tick       of a tick: the tick to run, ms, '' for none
--   next       of a tick: the cursor after the claim, ms, '' for none
--   trigger    of a tick: why it runs
--   parts      of a tick or pending run of a job with several shards: 'N,param,param,...', the params
--              escaped; else ''
local now, skew, node, name, keep, keep_for, server, short = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8])
local PLAIN, TERMS, JOB, DIGEST, RUN, TICK, NEXT = 6, 0, 1, 2, 3, 4, 5 -- how many, and their places
local HEAD, OTHER = 8, 14
local function other(a)
  return {kind = ARGV[a], job = ARGV[a + 1], digest = ARGV[a + 2], run = ARGV[a + 3], ttl = ARGV[a + 4],
    mode = ARGV[a + 5], most = ARGV[a + 6], bound = ARGV[a + 7], from = ARGV[a + 8], passes = ARGV[a + 9],
    tick = ARGV[a + 10], next = ARGV[a + 11], trigger = ARGV[a + 12], parts = ARGV[a + 13]}
end
-- end of ARGV
local us, ms = clock()
-- guard:claim-clock P1 a claim that was held up, or whose sender's clock is wrong, grants nothing
if clock_off(ms, now, skew) then return {'clock', int(ms)} end
local here = server_id()
local epoch, gate = epoch_at(here)
-- guard:claim-server P1 a server that may have lost grants gives none before nodes have reported them
if elsewhere(server, epoch) then return {'server', epoch} end
local shut
-- guard:claim-gate P7 a partition that a move has closed grants nothing
shut = closed_by(gate)
local OUTBOX_MAX, PENDING_MAX = 10000, 10000
local GUARD = 60000000 -- redisconn.TokenGuardMicros
local n = #k.histories
local names, at = {}, {} -- by item: the job's name, and the item's first place in ARGV
local a = HEAD + 1
for i = 1, n do
  names[i], at[i] = ARGV[a + JOB], a
  a = a + (#ARGV[a] == 1 and OTHER or PLAIN)
end
local raw = redis.call('HMGET', k.jobs, unpack(names))
local followed = redis.call('EXISTS', k.followers) == 1 and redis.call('HMGET', k.followers, unpack(names)) or {}
local saved, due, runs, leases = {}, {}, {}, {}
local granted, untils = int(ms), {} -- by ttl: the end of a lease that is granted now

-- The end of a lease that is granted now, for a tick that is due at an instant.
local function lapses(at, ttl)
  local from = math.max(ms, at)
  local till = from == ms and untils[ttl]
  if not till then
    local lasts = tonumber(ttl)
    -- guard:lease-begins-short P6 a node that dies soon after a grant blocks the job for seconds and not for its ttl
    lasts = math.min(lasts, short)
    till = int(from + lasts)
    if from == ms then untils[ttl] = till end
  end
  return till
end

-- Whether it is too early to grant the tick at an instant, or to pass the ticks up to another
-- instant.
local function early(at, passed)
  -- guard:tick-due P1 nothing is granted long before it is due by Redis' clock, and nothing is passed before
  if at > ms + AHEAD or passed > ms then return true end
  return false
end

-- Whether the caller has seen another cursor than the stored one.
local function cursor_differs(stands, seen)
  -- guard:cursor-compare P1 a tick is granted only from the stored cursor
  if stands ~= seen then return true end
  return false
end

-- Whether the caller has another definition than the stored one.
local function digest_differs(stored, digest)
  -- guard:definition-compare P7 only a node that has the stored definition is granted anything
  if stored ~= digest then return true end
  return false
end

-- needs: claim/plain

-- The slow path handles every item that is left.
if twice then raw = redis.call('HMGET', k.jobs, unpack(names)) end -- for the second item of a job
local out, place = {concat(tokens, ','), granted}, {}
local entries, changed, over, taken = {}, {}, {}, {}
saved, due, runs, leases = {}, {}, {}, {}
for j, i in ipairs(left) do place[i] = j * 4 - 1 end

-- The item whose arguments begin at a place.
local function item(a)
  if #ARGV[a] == 1 then return other(a) end
  local ttl, mode, most, trigger = match(ARGV[a], '^(%d+)|(%l)|(%d+)|(.*)$')
  local tick = ARGV[a + TICK]
  return {kind = 't', job = ARGV[a + JOB], digest = ARGV[a + DIGEST], run = ARGV[a + RUN], ttl = ttl, mode = mode, most = most, parts = '',
    from = tick, passes = '', tick = tick, next = ARGV[a + NEXT], trigger = trigger, bound = '0'}
end

-- needs: codec/entry claim/tick claim/pending

-- Removals come last: a Redis out of memory refuses the additions, and then nothing has been
-- removed.
local function flush()
  if #runs > 0 then
    redis.call('HSET', k.runs, unpack(runs))
    redis.call('ZADD', k.leases, unpack(leases))
  end
  -- guard:pending-taken P1 a pending run is granted once
  if #taken > 0 then
    redis.call('HDEL', k.waiting, unpack(taken))
    redis.call('ZREM', k.pending, unpack(taken))
  end
  runs, leases, taken = {}, {}, {}
end

for _, i in ipairs(left) do
  local c = item(at[i])
  local job, id = c.job, c.run
  if entries[job] then flush() end -- a second item of one job reads the first one's grant
  local e = entries[job] or entry_of(raw[i])
  entries[job] = e
  local known = false
  -- guard:claim-repeated P1 a repeated claim finds its grant, so that a lost reply costs no tick
  if e then known = repeated(i, e, id, c.kind, c.mode) end
  if known then -- answered above
  elseif shut then answer(i, 'closed', '', shut, '')
  elseif not raw[i] then answer(i, 'unknown', '', '', '')
  elseif not e then answer(i, 'foreign', '', '', '')
  elseif digest_differs(e.digest, c.digest) then answer(i, 'superseded', '', e.digest, '')
  elseif c.parts == '' or not is_open(i, e, id) then
    local claim = c.kind == 't' and claim_tick or claim_pending
    if claim(i, e, c) then changed[job] = e end
  end
end
flush()
for _, i in ipairs(left) do
  local job = names[i]
  if changed[job] then
    saved[#saved + 1], saved[#saved + 2] = job, entry_text(changed[job])
    changed[job] = nil
  end
end
if #saved > 0 then redis.call('HSET', k.jobs, unpack(saved)) end
if #due > 0 then redis.call('ZADD', k.due, unpack(due)) end
if #over > 0 then redis.call('ZREM', k.due, unpack(over)) end
return out
