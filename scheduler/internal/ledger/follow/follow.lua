-- Adds a follower to a job, or removes it. Followers get an event for each end of the job's ticks.
-- keys: followers gate
-- Arguments: followArgs in follow.go.
-- Returns 'closed|state|move|words', or one word: done, full (the job has as many followers as
-- there may be), standby (a later promotion has come here).
-- needs: lib/args lib/gate
local shut = closed(k.gate)
-- guard:follow-gate P7 a partition that a move has closed takes no follower
if shut then return 'closed|' .. shut end
if args.epoch ~= '' and args.epoch ~= gate_of(redis.call('GET', k.gate)).epoch then return 'standby' end
local upstream, job, add = args.upstream, args.job, args.add
local list, known = {}, false
for name in string.gmatch(redis.call('HGET', k.followers, upstream) or '', '[^,]+') do
  if name == job then known = true end
  if name ~= job or add then list[#list + 1] = name end
end
if add and not known then
  if #list >= 256 then return 'full' end
  list[#list + 1] = job
end
if #list == 0 then redis.call('HDEL', k.followers, upstream)
else redis.call('HSET', k.followers, upstream, table.concat(list, ',')) end
return 'done'
