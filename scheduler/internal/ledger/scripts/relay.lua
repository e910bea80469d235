-- Delivers an event of an upstream tick to one follower, once. A success makes a pending run with the same tick. Any other outcome is
-- recorded as skipped(upstream), unless the tick has a run or a row. A job that stopped following before the delivery has missed
-- the tick. None of these is a step of the job's own cursor, so its row has no prev.
-- keys: jobs defs runs pending waiting unique kept recent outbox followers history gate
-- Arguments: relayArgs in follow.go.
-- Returns 'closed|state|move|words', or one word: relayed (also when repeated), unrelated (no such job, or no follower), full, foreign,
-- unheld (it waits).
-- needs: lib/args lib/gate lib/windows lib/history lib/outbox lib/waiting codec/entry codec/run codec/pending
local job, upstream, id, tick, last, num = args.job, args.upstream, args.run, args.tick, args.last, args.count
local shut = closed(k.gate)
if shut then return 'closed|' .. shut end
local OUTBOX_MAX = 10000
local us, ms = clock()
local text = redis.call('HGET', k.jobs, job)
if not text then return 'unrelated' end
local e = entry_of(text)
if not e then return 'foreign' end
local def = redis.call('HGET', k.defs, e.digest) or ''

local function following()
  if not string.find(def, '"after":"' .. upstream .. '"', 1, true) then return false end
  local ok, d = pcall(cjson.decode, def)
  return ok and d.after == upstream -- the text may be that of a label
end

local follows = following()
local rows = redis.pcall('LRANGE', k.history, 0, -1)

-- Whether the job's definition was replaced since the event: the job followed then.
local function replaced()
  for _, row in ipairs(rows.err and {} or rows) do
    local r = range_of(row)
    if r and r.outcome == 'superseded' and r.reason == 'definition replaced' and tonumber(r.at) >= args.known then return true end
  end
  return false
end

if not follows and not replaced() then return 'unrelated' end
if rows.err then return 'foreign' end
redis.call('ZREMRANGEBYSCORE', k.unique, '-inf', int(ms))

local function same(r) return r.tick == tick and r.request == '' end

local nobody = (args.unheld or args.holders) and not among(args.holders, e.digest)
local succeeded = args.outcome == 'succeeded'
local may_run = succeeded and follows and (not nobody or not args.unheld)

-- Whether the tick has a run, also under a later id, or a row. A success by a rerun may still run after a failure was recorded.
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

local mark = succeeded and id or id .. ' ' .. args.outcome .. ' ' .. last -- of several ticks, after a rewind also of others
local before = redis.call('ZSCORE', k.unique, mark) and true or ran()
if before == 'foreign' then return 'foreign' end
-- guard:relay-once P1 a tick of the job that is followed leads to one run
if before then -- an event that is delivered repeatedly is remembered on
  redis.call('ZADD', k.unique, int(ms + args.remember), mark)
  return 'relayed'
end
if may_run and nobody then return 'unheld' end
if may_run then
  if redis.call('ZCARD', k.pending) >= args.most then return 'full' end
  local at, attempt = int(math.min(ms, args.known)), reattempt(e, tonumber(tick))
  if attempt ~= '1' then id = id .. '-' .. attempt end -- an id is granted once
  redis.call('HSET', k.waiting, id, pending_text({job = job, tick = tick, shard = '0', shards = '1', attempt = attempt,
    prev = '', next = '', trigger = 'after', request = '', at = at, holds = '', of = '', param = '', payload = ''}))
  redis.call('ZADD', k.pending, at, id)
else
  local how, why, note = 'skipped', 'upstream', args.outcome
  if succeeded then how, why, note = 'missed', 'late', '' end
  local nxt, followed = args.next or '', redis.call('HEXISTS', k.followers, job) == 1
  if followed and redis.call('ZCARD', k.outbox) >= OUTBOX_MAX then return 'full' end
  if not pass(k.history, k.kept, e, '', tick, last, num, nxt, how, why, note, ms, args.keep, args.keep_for) then return 'foreign' end
  if followed then notify(k.outbox, job, '', nxt, tick, last, num, how, ms) end
  redis.call('HSET', k.jobs, job, entry_text(e))
end
redis.call('ZADD', k.unique, int(ms + args.remember), mark)
return 'relayed'
