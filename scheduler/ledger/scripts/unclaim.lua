-- Hands granted runs back whose function was never called: pending again, same attempt, under
-- a fresh run id. The old id is burnt: a delayed copy of its claim finds nothing to take.
-- KEYS[1] jobs  KEYS[2] runs  KEYS[3] leases  KEYS[4] pending  KEYS[5] waiting
-- ARGV 3 for each item: job, run, fresh run id
-- Returns one word for each item: returned (also when repeated), lost, foreign.
local us, ms = clock()
local out = {}
for i = 1, #ARGV / 3 do
  local job, id, fresh = ARGV[i * 3 - 2], ARGV[i * 3 - 1], ARGV[i * 3]
  local text = redis.call('HGET', KEYS[2], id)
  local r = run_of(text)
  local e = entry_of(redis.call('HGET', KEYS[1], job))
  if not text then
    out[i] = redis.call('HEXISTS', KEYS[5], fresh) == 1 and 'returned' or 'lost'
  elseif not r or not e then out[i] = 'foreign'
  else
    if r.trigger == 'manual' and r.request == '' then r.request = id end
    r.at = int(ms)
    redis.call('HSET', KEYS[5], fresh, pending_text(r))
    redis.call('ZADD', KEYS[4], r.at, fresh)
    if e.open == id then
      e.open = fresh
      redis.call('HSET', KEYS[1], job, entry_text(e))
    end
    redis.call('HDEL', KEYS[2], id)
    redis.call('ZREM', KEYS[3], id)
    out[i] = 'returned'
  end
end
return out
