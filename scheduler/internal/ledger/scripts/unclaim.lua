-- Hands granted runs back whose function was never called: pending again, same attempt, under
-- a fresh run id. The old id is burnt: a delayed copy of its claim finds nothing to take. A run
-- that was to be cancelled is recorded as cancelled instead.
-- KEYS[1] jobs  KEYS[2] runs  KEYS[3] leases  KEYS[4] pending  KEYS[5] waiting  KEYS[6] kept
-- KEYS[7] cancels  KEYS[8] outbox  KEYS[9] followers  KEYS[9+i] history of item i's job
-- ARGV[1] rows to keep  ARGV[2] age to keep, ms  then 4 for each item: job, run, token ('' for any), fresh run id
-- Returns one word for each item: returned (also when repeated), lost, foreign.
-- needs: lib/finish lib/rows codec/entry codec/run codec/pending
local us, ms = clock()
local k = {runs = KEYS[2], pending = KEYS[4], waiting = KEYS[5], kept = KEYS[6], cancels = KEYS[7], outbox = KEYS[8], followers = KEYS[9]}
local out = {}

local function back(i, job, id, fresh, r, e)
  local flag = wanted(KEYS[7], id, r)
  if flag then
    if not finish(k, KEYS[9 + i], e, id, r, end_row(id, r, 'cancelled', reason_of(flag), r.granted, int(ms), '0', ''), 'cancelled', '',
      '', ms, ms, ARGV[1], ARGV[2]) then return 'foreign' end
    redis.call('HSET', KEYS[1], job, entry_text(e))
  else
    if r.trigger == 'manual' and r.request == '' then r.request = id end
    r.at, r.holds = int(ms), '1'
    redis.call('HSET', KEYS[5], fresh, pending_text(r))
    redis.call('ZADD', KEYS[4], r.at, fresh)
    if e.open == id then
      e.open = fresh
      free(e, r.mode, r.granted, ms, true) -- as for an attempt that follows: ticks meanwhile came due behind this one
      redis.call('HSET', KEYS[1], job, entry_text(e))
    end
  end
  -- guard:unclaim-burns P1 the id of a run that was handed back grants nothing any more
  redis.call('HDEL', KEYS[2], id)
  redis.call('ZREM', KEYS[3], id)
  return 'returned'
end

for i = 1, (#ARGV - 2) / 4 do
  local a = i * 4 - 1
  local job, id, token, fresh = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local text = redis.call('HGET', KEYS[2], id)
  local r = run_of(text)
  local e = entry_of(redis.call('HGET', KEYS[1], job))
  if not text then
    out[i] = redis.call('HEXISTS', KEYS[5], fresh) == 1 and not find_row(KEYS[9 + i], id) and 'returned' or 'lost'
  elseif not r or not e then out[i] = 'foreign'
  elseif token ~= '' and token ~= r.token then out[i] = 'lost'
  else out[i] = back(i, job, id, fresh, r, e)
  end
end
return out
