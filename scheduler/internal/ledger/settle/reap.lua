-- Settles, as abandoned, runs whose lease lapsed: only if the beat has not moved since the caller
-- read it, and 'until' has passed. An 'until' farther ahead than any renewal by this clock can have
-- set was stored by a clock that was taken back: the lease then ends a ttl from now, which is later
-- than its holder believes. The caller has read the clock of the named server run steadily; another
-- server does nothing. A next attempt follows where attempts are left.
-- keys: jobs runs leases pending waiting kept recent cancels outbox followers gate incarnation histories
-- Returns {'clock', redis ms}, or one word for each item: reaped, alive, gone, foreign.
-- needs: lib/epoch lib/finish lib/rows codec/run codec/entry
-- ARGV, written by gen from verbs.go:
--   now        the caller's idea of Redis' time, ms, 0 for none
--   skew       tolerated difference, ms
--   keep       rows to keep
--   keep_for   age to keep, ms
--   server     id of the caller's epoch, '' for any
-- then for each item:
--   job        the job's name
--   id         id of the run
--   beat       the beat that was seen
--   fresh      id of the run that may follow
local now, skew, keep, keep_for, server = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local n = (#ARGV - 5) / 4
local function item(i)
  local a = 6 + (i - 1) * 4
  return {job = ARGV[a], id = ARGV[a + 1], beat = ARGV[a + 2], fresh = ARGV[a + 3]}
end
-- end of ARGV
local us, ms = clock()
if clock_off(ms, now, skew) or elsewhere(server, (epoch_at(server_id()))) then return {'clock', int(ms)} end
local out = {}

local function shorten(id, r)
  r.until_ = int(ms + r.ttl)
  redis.call('HSET', k.runs, id, run_text(r))
  redis.call('ZADD', k.leases, r.until_, id)
end

for i = 1, n do
  local c = item(i)
  local id = c.id
  local text = redis.call('HGET', k.runs, id)
  local r = run_of(text)
  local e = entry_of(redis.call('HGET', k.jobs, c.job))
  local alive, most = false, r and ms + r.ttl + AHEAD
  -- guard:lease-clipped P6 a lease does not outlive a clock that was taken back
  if r and e and tonumber(r.until_) > most then shorten(id, r) end
  -- guard:reap-beat P4 a lease that was renewed since the caller read it is alive
  if r and r.beat ~= c.beat then alive = true end
  -- guard:reap-until P4 a lease is reaped only when its time is over
  if r and tonumber(r.until_) >= ms then alive = true end
  if not text then out[i] = 'gone'
  elseif not r or not e then out[i] = 'foreign'
  elseif alive then out[i] = 'alive'
  else
    local freed = r.of == '' and tonumber(r.until_) or ms -- a tick is busy for as long as any of its shards
    if finish(k, k.histories[i], e, id, r, end_row(id, r, 'abandoned', 'lease lapsed', r.granted, int(ms), '0', ''), 'abandoned', '',
      c.fresh, freed, ms, keep, keep_for) then
      redis.call('HSET', k.jobs, c.job, entry_text(e))
      redis.call('HDEL', k.runs, id)
      redis.call('ZREM', k.leases, id)
      out[i] = 'reaped'
    else
      out[i] = 'foreign'
    end
  end
end
return out
