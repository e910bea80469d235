-- Renews a batch of leases: moves 'until' to now + ttl and counts the beat. A lease that lapsed
-- and that nobody reaped is still its holder's and may be renewed.
-- KEYS[1] runs  KEYS[2] leases
-- ARGV two for each item: run, ttl ms
-- Returns one word for each item: renewed, gone, or foreign.
local us, ms = clock()
local ids, out, runs, leases = {}, {}, {}, {}
local n = #ARGV / 2
for i = 1, n do ids[i] = ARGV[i * 2 - 1] end
local held = redis.call('HMGET', KEYS[1], unpack(ids))
for i = 1, n do
  local beat, rest = string.match(held[i] or '', '^1|%d+|(%d+)|(.*)$')
  if beat then
    local till = int(ms + ARGV[i * 2])
    runs[#runs + 1], runs[#runs + 2] = ids[i], '1|' .. till .. '|' .. int(beat + 1) .. '|' .. rest
    leases[#leases + 1], leases[#leases + 2] = till, ids[i]
    out[i] = 'renewed'
  else
    out[i] = held[i] and 'foreign' or 'gone'
  end
end
if #runs > 0 then
  redis.call('HSET', KEYS[1], unpack(runs))
  redis.call('ZADD', KEYS[2], unpack(leases))
end
return out
