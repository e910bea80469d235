-- Settles, as abandoned, runs whose lease lapsed: only if the run is the one seen, its beat has
-- not moved since, and 'until' has passed. The caller vouches that the clock of the server it
-- names ran steadily; another server's it knows nothing of. Attempts that are left follow.
-- KEYS[1] jobs  KEYS[2] runs  KEYS[3] leases  KEYS[4] pending  KEYS[5] waiting  KEYS[6] kept
-- KEYS[7] cancels  KEYS[8] outbox  KEYS[9] followers  KEYS[9+i] history of item i's job
-- ARGV[1] the caller's idea of Redis' time, ms  ARGV[2] tolerated difference, ms
-- ARGV[3] rows to keep  ARGV[4] age to keep, ms  ARGV[5] id of the server, '' for any
-- then 4 for each item: job, run, beat seen, run id of the next attempt
-- Returns {'clock', redis ms}, or one word for each item: reaped, alive, gone, foreign.
-- needs: lib/finish lib/rows codec/run codec/entry
local keep, keep_for = ARGV[3], ARGV[4]
local us, ms = clock()
if astray(ms, ARGV[1], ARGV[2]) or elsewhere(ARGV[5], server_id()) then return {'clock', int(ms)} end
local k = {runs = KEYS[2], pending = KEYS[4], waiting = KEYS[5], kept = KEYS[6], cancels = KEYS[7], outbox = KEYS[8], followers = KEYS[9]}
local out = {}
for i = 1, (#ARGV - 5) / 4 do
  local a = 2 + i * 4
  local job, id, beat, fresh = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local text = redis.call('HGET', KEYS[2], id)
  local r = run_of(text)
  local e = entry_of(redis.call('HGET', KEYS[1], job))
  local alive = false
  -- guard:reap-beat P4 a lease that was renewed since it was seen is alive
  if r and r.beat ~= beat then alive = true end
  -- guard:reap-until P4 a lease is reaped only when its time is over
  if r and tonumber(r.until_) >= ms then alive = true end
  if not text then out[i] = 'gone'
  elseif not r or not e then out[i] = 'foreign'
  elseif alive then out[i] = 'alive'
  else
    local freed = r.of == '' and tonumber(r.until_) or ms -- a tick is busy for as long as any of its shards
    if finish(k, KEYS[9 + i], e, id, r, end_row(id, r, 'abandoned', 'lease lapsed', r.granted, int(ms), '0', ''), 'abandoned', '',
      fresh, freed, ms, keep, keep_for) then
      redis.call('HSET', KEYS[1], job, entry_text(e))
      redis.call('HDEL', KEYS[2], id)
      redis.call('ZREM', KEYS[3], id)
      out[i] = 'reaped'
    else
      out[i] = 'foreign'
    end
  end
end
return out
