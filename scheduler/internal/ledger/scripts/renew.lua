-- Renews a batch of leases: moves 'until' to now + ttl and counts the beat. A lease that lapsed
-- and that nobody reaped is still its holder's and may be renewed.
-- KEYS[1] runs  KEYS[2] leases
-- ARGV[1] id of the server that the caller knows, '' for any
-- then three for each item: run, token ('' for any), ttl ms
-- Returns {'server', id} and does nothing when the caller knows another server, else one text, a word for each item, parted by
-- commas: renewed, gone (also when somebody was granted the run since), or foreign.
-- needs: lib/base codec/run
local us, ms = clock()
if ARGV[1] ~= '' then
  local here = server_id()
  if elsewhere(ARGV[1], here) then return {'server', here} end
end
local sub, match = string.sub, string.match
local ids, out, runs, leases, size = {}, {}, {}, {}, 0
local tills, beats = {}, {} -- what was spelt out: when a lease ends, by its ttl, and the beat after another one
local n = (#ARGV - 1) / 3
for i = 1, n do ids[i] = ARGV[i * 3 - 1] end
local held = redis.call('HMGET', KEYS[1], unpack(ids))
for i = 1, n do
  local run, asked, ttl = held[i], ARGV[i * 3], ARGV[i * 3 + 1]
  local beat, at, token = match(run or '', RUN_BEAT)
  if beat and (asked == '' or asked == token) then
    if not tills[ttl] then tills[ttl] = int(ms + ttl) end
    if not beats[beat] then beats[beat] = int(beat + 1) end
    runs[size + 1], runs[size + 2] = ids[i], '1|' .. tills[ttl] .. '|' .. beats[beat] .. '|' .. sub(run, at)
    leases[size + 1], leases[size + 2] = tills[ttl], ids[i]
    size = size + 2
    out[i] = 'renewed'
  else
    out[i] = run and not beat and 'foreign' or 'gone'
  end
end
if size > 0 then
  redis.call('HSET', KEYS[1], unpack(runs))
  redis.call('ZADD', KEYS[2], unpack(leases))
end
return table.concat(out, ',')
