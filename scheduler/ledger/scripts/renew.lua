-- Renews a batch of leases: moves 'until' to now + ttl and counts the beat. A lease that lapsed
-- and that nobody reaped is still its holder's and may be renewed.
-- KEYS[1] runs  KEYS[2] leases
-- ARGV[1] run_id of the server that the caller knows, '' for any
-- then three for each item: run, token ('' for any), ttl ms
-- Returns {'server', run_id} and does nothing when the caller knows another server, else one word for each item:
-- renewed, gone (also when somebody was granted the run since), or foreign.
local us, ms = clock()
if ARGV[1] ~= '' then
  local here = server_run_id()
  if elsewhere(ARGV[1], here) then return {'server', here} end
end
local ids, out, runs, leases = {}, {}, {}, {}
local n = (#ARGV - 1) / 3
for i = 1, n do ids[i] = ARGV[i * 3 - 1] end
local held = redis.call('HMGET', KEYS[1], unpack(ids))
for i = 1, n do
  local beat, rest, token = string.match(held[i] or '', '^1|%d+|(%d+)|([^|]*|%d+|%d+|%d+|%d+|(%d+)|.*)$')
  if beat and (ARGV[i * 3] == '' or ARGV[i * 3] == token) then
    local till = int(ms + ARGV[i * 3 + 1])
    runs[#runs + 1], runs[#runs + 2] = ids[i], '1|' .. till .. '|' .. int(beat + 1) .. '|' .. rest
    leases[#leases + 1], leases[#leases + 2] = till, ids[i]
    out[i] = 'renewed'
  else
    out[i] = held[i] and not beat and 'foreign' or 'gone'
  end
end
if #runs > 0 then
  redis.call('HSET', KEYS[1], unpack(runs))
  redis.call('ZADD', KEYS[2], unpack(leases))
end
return out
