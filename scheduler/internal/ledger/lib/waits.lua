-- What runs wait for before they start.
-- needs: lib/base codec/tick codec/wait

-- Returns what a run, or a shard of an open tick, waits for, as the note of ticks that do not run
-- meanwhile; else ''.
local function waits_for(k, run)
  local fields, t = {'g:' .. run}, tick_of(redis.call('HGET', k.waiting, run))
  if t then
    for shard = 0, t.shards - 1 do fields[shard + 1] = 'g:' .. run .. '.' .. int(shard) end
  end
  for _, said in ipairs(redis.call('HMGET', k.kept, unpack(fields))) do
    local w = wait_of(said)
    if w and w.note ~= '' then return w.note end
  end
  return ''
end
