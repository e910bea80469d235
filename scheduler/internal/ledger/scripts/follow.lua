-- Notes that a job follows another, or does so no more. The other's ends are told from then on.
-- KEYS[1] followers  and last the partition's gate
-- ARGV[1] the job that is followed  ARGV[2] the job that follows  ARGV[3] 1 to follow, 0 to end it
-- ARGV[4] epoch of the promotion that this is part of, '' for a node's own wish
-- Returns 'closed|state|move|words', or one word: done, full (the job has as many followers as there may be), standby (a
-- later promotion has come here).
-- needs: lib/gate
local shut = closed(KEYS[#KEYS])
if shut then return 'closed|' .. shut end
if ARGV[4] ~= '' and ARGV[4] ~= gate_of(redis.call('GET', KEYS[#KEYS])).epoch then return 'standby' end
local upstream, job, add = ARGV[1], ARGV[2], ARGV[3] == '1'
local list, known = {}, false
for name in string.gmatch(redis.call('HGET', KEYS[1], upstream) or '', '[^,]+') do
  if name == job then known = true end
  if name ~= job or add then list[#list + 1] = name end
end
if add and not known then
  if #list >= 256 then return 'full' end
  list[#list + 1] = job
end
if #list == 0 then redis.call('HDEL', KEYS[1], upstream)
else redis.call('HSET', KEYS[1], upstream, table.concat(list, ',')) end
return 'done'
