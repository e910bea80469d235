-- Settles, as abandoned, runs whose lease lapsed: only if the run is the one seen, its beat has
-- not moved since, and 'until' has passed. The caller vouches that the clock of the server it
-- names ran steadily; another server's it knows nothing of.
-- KEYS[1] jobs  KEYS[2] runs  KEYS[3] leases  KEYS[3+i] history of item i's job
-- ARGV[1] the caller's idea of Redis' time, ms  ARGV[2] tolerated difference, ms
-- ARGV[3] rows to keep  ARGV[4] age to keep, ms  ARGV[5] run_id of the server
-- then 3 for each item: job, run, beat seen
-- Returns {'clock', redis ms}, or one word for each item: reaped, alive, gone, foreign.
local keep, keep_for = ARGV[3], ARGV[4]
local us, ms = clock()
if astray(ms, ARGV[1], ARGV[2]) or server_run_id() ~= ARGV[5] then return {'clock', int(ms)} end
local out = {}
for i = 1, (#ARGV - 5) / 3 do
  local job, id, beat = ARGV[3 + i * 3], ARGV[4 + i * 3], ARGV[5 + i * 3]
  local text = redis.call('HGET', KEYS[2], id)
  local r = run_of(text)
  local e = entry_of(redis.call('HGET', KEYS[1], job))
  if not text then out[i] = 'gone'
  elseif not r or not e then out[i] = 'foreign'
  elseif r.beat ~= beat or tonumber(r.until_) >= ms then out[i] = 'alive'
  elseif not append(KEYS[3 + i], row_text(id, r, 'abandoned', 'lease lapsed', r.granted, int(ms), '0', ''), e, ms, keep, keep_for) then
    out[i] = 'foreign'
  else
    if e.open == id then e.open = '' end
    redis.call('HSET', KEYS[1], job, entry_text(e))
    redis.call('HDEL', KEYS[2], id)
    redis.call('ZREM', KEYS[3], id)
    out[i] = 'reaped'
  end
end
return out
