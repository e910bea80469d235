-- Delivers an event of an upstream tick to one follower, once. An end that the follower waits for
-- makes a pending run with the same tick; for a follower of several jobs, the last upstream's end
-- does. Any other outcome is recorded as skipped(upstream), unless the tick has a run or a row. A
-- job that stopped following before the delivery has missed the tick. None of these is a step of
-- the job's own cursor, so the row has no prev.
-- keys: jobs defs runs pending waiting unique kept recent outbox followers joins history gate
-- Arguments: relayArgs in follow.go, and the upstream's result.
-- Returns 'closed|state|move|words', or one word: relayed (also when repeated), unrelated (no such
-- job, or no follower), full, foreign, unheld (the event waits), several (deliver these ticks one
-- by one; of gaps, one overlaps a row or a run by now).
-- needs: lib/args lib/gate lib/windows lib/history lib/outbox lib/waiting lib/joined codec/entry codec/run codec/pending
local job, upstream, id, tick, last, num = args.job, args.upstream, args.run, args.tick, args.last, args.count
local outcome, payload = args.outcome, bytes
local shut = closed(k.gate)
-- guard:relay-gate P7 a partition that a move has closed takes no event: it would not move with it
if shut then return 'closed|' .. shut end
local OUTBOX_MAX = 10000
local us, ms = clock(args.now, args.skew)
local text = redis.call('HGET', k.jobs, job)
if not text then return 'unrelated' end
local e = entry_of(text)
if not e then return 'foreign' end
local def = redis.call('HGET', k.defs, e.digest) or ''

-- The upstreams of the follower, and after which of their outcomes the follower runs.
local function followed_jobs()
  if string.find(def, '"after":', 1, true) and string.find(def, '"' .. upstream .. '"', 1, true) then -- may be the text of a label
    local ok, d = pcall(cjson.decode, def)
    if ok then return type(d.after) == 'table' and d.after or {d.after}, d.when or 'succeeded' end
  end
  return {}, 'succeeded'
end

local ups, when = followed_jobs()
local follows = among(ups, upstream)
local several = follows and #ups > 1
local rows = redis.pcall('LRANGE', k.history, 0, -1)

-- Whether the job's definition was replaced since the event: the job followed then.
local function replaced()
  for _, row in ipairs(rows.err and {} or rows) do
    local r = range_of(row)
    if r and r.outcome == 'superseded' and r.reason == 'definition replaced' and tonumber(r.at) >= args.known then return true end
  end
  return false
end

if not follows then
  if not replaced() then return 'unrelated' end
  when = 'succeeded'
end
if rows.err then return 'foreign' end

-- Whether the follower runs after ticks with that outcome.
local function wants(how)
  if how == 'succeeded' then return when ~= 'failed' end
  if how == 'skipped' or how == 'missed' then return when == 'any' end
  return when ~= 'succeeded' and SEVERITY[how] ~= nil and SEVERITY[how] < 9
end

local idle = outcome == 'skipped' or outcome == 'missed'
if num > 1 and not args.rest and (several or idle and when == 'any') then return 'several' end
local followed = redis.call('HEXISTS', k.followers, job) == 1
local full = followed and redis.call('ZCARD', k.outbox) >= OUTBOX_MAX

-- Records gaps as skipped, one row for each. A gap that a row or a run overlaps by now is left, and
-- the caller looks again.
local function skip(gaps)
  if full then return 'full' end
  local over, answer = passed_over(rows), 'relayed'
  local function note(r)
    if r.request == '' then over.ran[tonumber(r.tick)] = true end
  end
  if any(k.runs, run_of, job, note) or any(k.waiting, pending_of, job, note) then return 'foreign' end
  for _, gap in ipairs(gaps) do
    local free = true
    -- guard:relay-gap P2 ticks that have a row of the follower, or a run, are not recorded as
    -- skipped too
    if lie_among(over, tonumber(gap.first), tonumber(gap.last)) then free, answer = false, 'several' end
    if free then
      local nxt = gap.next or ''
      if not pass(k.history, k.kept, e, '', gap.first, gap.last, gap.count, nxt, 'skipped', 'upstream', outcome, ms, args.keep, args.keep_for) then
        return 'foreign'
      end
      if followed then notify(k.outbox, job, '', nxt, gap.first, gap.last, gap.count, 'skipped', ms) end
    end
  end
  redis.call('HSET', k.jobs, job, entry_text(e))
  return answer
end

if args.gaps then return skip(args.gaps) end
local join
if several then
  id = args.joined
  if num == 1 and not args.rest then
    if full then return 'full' end -- a tick that is given up sends an event, too
    join = note_end(k, k.history, job, tick, ups, upstream, outcome, payload, e, ms, args.keep, args.keep_for)
    if join == 'foreign' then return 'foreign' end
    redis.call('HSET', k.jobs, job, entry_text(e))
    if join.state == 'r' then return 'relayed' end
    outcome = joined(join, ups, when)
    if not outcome then return 'relayed' end
    payload = joined_results(k.joins, job, tick, ups)
    rows = redis.call('LRANGE', k.history, 0, -1)
  end
end
redis.call('ZREMRANGEBYSCORE', k.unique, '-inf', int(ms))

local function same(r) return r.tick == tick and r.request == '' end

local nobody = (args.unheld or args.holders) and not among(args.holders, e.digest)
local wanted = wants(outcome) and not args.rest
local may_run = wanted and follows and (not nobody or not args.unheld)

-- Whether the tick has a run, also under a later id, or a row. A success by a rerun may still run
-- after a failure was recorded.
local function ran()
  if num == 1 and redis.call('ZSCORE', k.unique, id) then return true end
  local going = num == 1 and (any(k.runs, run_of, job, same) or any(k.waiting, pending_of, job, same))
  if going then return going end
  for _, row in ipairs(rows) do
    local t, _, _, request = string.match(num == 1 and row or '', ROW_RUN)
    if t == tick and request == '' then return true end
    local r = range_of(row)
    if r and r.tick ~= '' and r.last ~= '' and tonumber(r.tick) <= tonumber(tick) and tonumber(last) <= tonumber(r.last)
      and (not may_run or r.reason ~= 'upstream') then return true end
  end
  return false
end

-- Records the decision on the tick in its join.
local function decided(state)
  if not join then return end
  join.state = state
  if state == 'r' then forget_results(k.joins, job, tick, join) end
  save_join(k.joins, job, tick, ups, join)
end

local mark = wanted and id or id .. ' ' .. outcome .. ' ' .. last -- after a rewind, id may name other ticks
local before = redis.call('ZSCORE', k.unique, mark) and true or ran()
if before == 'foreign' then return 'foreign' end
-- guard:relay-once P1 a tick of an upstream leads to one run
if before then -- a repeated event is remembered longer
  redis.call('ZADD', k.unique, int(ms + args.remember), mark)
  decided(may_run and 'r' or 's')
  return 'relayed'
end
if may_run and nobody then return 'unheld' end
if may_run then
  if redis.call('ZCARD', k.pending) >= args.most then return 'full' end
  local at, attempt = int(math.min(ms, args.known)), reattempt(e, tonumber(tick))
  if attempt ~= '1' then id = id .. '-' .. attempt end -- an id is granted once
  redis.call('HSET', k.waiting, id, pending_text({job = job, tick = tick, shard = '0', shards = '1', attempt = attempt,
    prev = '', next = '', trigger = 'after', request = '', at = at, holds = '', of = '', param = '', payload = payload}))
  redis.call('ZADD', k.pending, at, id)
else
  local how, why, note = 'skipped', 'upstream', outcome
  if wanted then how, why, note = 'missed', 'late', '' end
  local nxt = args.next or ''
  if full then return 'full' end
  if not pass(k.history, k.kept, e, '', tick, last, num, nxt, how, why, note, ms, args.keep, args.keep_for) then return 'foreign' end
  if followed then notify(k.outbox, job, '', nxt, tick, last, num, how, ms) end
  redis.call('HSET', k.jobs, job, entry_text(e))
end
decided(may_run and 'r' or 's')
redis.call('ZADD', k.unique, int(ms + args.remember), mark)
return 'relayed'
