-- Brings word of a tick of the job that another one follows: a success makes a pending run with the
-- same tick, once; anything else is recorded as skipped(upstream), once, unless the tick has an answer. A job that has come to
-- follow another one, or none, before it was told has missed the tick. These are no steps of the job's own cursor, so they have no prev.
-- KEYS[1] jobs  KEYS[2] defs  KEYS[3] runs  KEYS[4] pending  KEYS[5] waiting  KEYS[6] unique  KEYS[7] kept
-- KEYS[8] outbox  KEYS[9] followers  KEYS[10] history of the job  and last the partition's gate
-- Returns 'closed|state|move|words', or one word: relayed (also when repeated), stranger (the job is not there, or did not follow), full, foreign,
-- unheld (it waits).
-- needs: lib/gate lib/windows lib/history lib/outbox lib/waiting codec/entry codec/run codec/pending
-- ARGV, written by gen from verbs.go:
--   job        the job's name
--   upstream   the job that is followed
--   id         id of the run to be
--   most       most pending runs in this partition
--   nxt        the cursor after the step, ms, '' for none
--   tick       first tick, ms
--   last       last tick, ms
--   num        how many ticks
--   outcome    what became of them
--   known      when it was known, ms
--   remember   for how long the id is remembered, ms
--   keep       rows to keep
--   keep_for   age to keep, ms
--   unheld     what becomes of a tick that succeeded when nobody alive holds the job as it is stored: '1' it
--              is missed, '0' it waits; '' it runs once somebody does
--   holders    digests of the definitions of the job that are held, with commas between them
local job, upstream, id, most, nxt, tick, last, num, outcome, known, remember, keep, keep_for, unheld, holders =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8]), ARGV[9],
    tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12], ARGV[13], ARGV[14], ARGV[15]
-- end of ARGV
local shut = closed(KEYS[#KEYS])
if shut then return 'closed|' .. shut end
local OUTBOX_MAX = 10000
local us, ms = clock()
local text = redis.call('HGET', KEYS[1], job)
if not text then return 'stranger' end
local e = entry_of(text)
if not e then return 'foreign' end
local def = redis.call('HGET', KEYS[2], e.digest) or ''

local function following()
  if not string.find(def, '"after":"' .. upstream .. '"', 1, true) then return false end
  local ok, d = pcall(cjson.decode, def)
  return ok and d.after == upstream -- the text may be that of a label
end

local follows = following()
local rows = redis.pcall('LRANGE', KEYS[10], 0, -1)

-- Whether the job got another definition since this was known: it followed then, and was not told yet.
local function replaced()
  for _, row in ipairs(rows.err and {} or rows) do
    local r = range_of(row)
    if r and r.outcome == 'superseded' and r.reason == 'definition replaced' and tonumber(r.at) >= known then return true end
  end
  return false
end

if not follows and not replaced() then return 'stranger' end
if rows.err then return 'foreign' end
redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', int(ms))

local function same(r) return r.tick == tick and r.request == '' end

local nobody = unheld ~= '' and not string.find(',' .. holders .. ',', ',' .. e.digest .. ',', 1, true)
local succeeded = outcome == 'succeeded'
local may_run = succeeded and follows and (not nobody or unheld == '0')

-- Whether the tick has its answer: a run, which may have gone on under other ids, or a row. A success that
-- comes after a failure, by a rerun, is another matter than the failure, where it may lead to a run.
local function ran()
  if num == 1 and redis.call('ZSCORE', KEYS[6], id) then return true end
  local going = num == 1 and (any(KEYS[3], run_of, job, same) or any(KEYS[5], pending_of, job, same))
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

local mark = succeeded and id or id .. ' ' .. outcome .. ' ' .. last -- of several ticks, after a rewind also of others
local before = redis.call('ZSCORE', KEYS[6], mark) and true or ran()
if before == 'foreign' then return 'foreign' end
-- guard:relay-once P1 a tick of the job that is followed leads to one run
if before then -- word that is told again and again is remembered for as long as that
  redis.call('ZADD', KEYS[6], int(ms + remember), mark)
  return 'relayed'
end
if may_run and nobody then return 'unheld' end
if may_run then
  if redis.call('ZCARD', KEYS[4]) >= most then return 'full' end
  local at, attempt = int(math.min(ms, known)), again(e, tonumber(tick))
  if attempt ~= '1' then id = id .. '-' .. attempt end -- an id is granted once
  redis.call('HSET', KEYS[5], id, pending_text({job = job, tick = tick, shard = '0', shards = '1', attempt = attempt,
    prev = '', next = '', trigger = 'after', request = '', at = at, holds = '', of = '', param = '', payload = ''}))
  redis.call('ZADD', KEYS[4], at, id)
else
  local how, why, note = 'skipped', 'upstream', outcome
  if succeeded then how, why, note = 'missed', 'late', '' end
  local followed = redis.call('HEXISTS', KEYS[9], job) == 1
  if followed and redis.call('ZCARD', KEYS[8]) >= OUTBOX_MAX then return 'full' end
  if not pass(KEYS[10], KEYS[7], e, '', tick, last, num, nxt, how, why, note, ms, keep, keep_for) then return 'foreign' end
  if followed then tell(KEYS[8], job, '', nxt, tick, last, num, how, ms) end
  redis.call('HSET', KEYS[1], job, entry_text(e))
end
redis.call('ZADD', KEYS[6], int(ms + remember), mark)
return 'relayed'
