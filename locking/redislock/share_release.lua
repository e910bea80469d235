-- Releases the permits that this owner holds, or its place in the queue. The permits go to the
-- first waiters. May be repeated: the state keeps the last eight owners that released.
--
-- Behind token.lua, queue.lua, which names the KEYS, and share.lua.
--
-- ARGV  1 owner
--
-- Returns 1 released, now or before; 0 other owners hold permits; -1 the name is free.
local owner = ARGV[1]

local now, last = server_micros(), redis.call('HMGET', state, 'o', 'q', 't')
local mine = held_of(redis.call('HGET', lock, owner)).lapses >= millis(now)
-- First: a server without memory refuses HSET as the first write of a script, and no later one.
redis.call('HDEL', lock, owner)
if mine then
  redis.call('HSET', state, 'o', among(owner, last[1]))
  if not last[3] then redis.call('PEXPIRE', state, keep) end -- the state was lost while the permits were held
else
  the_queue().leave(owner)
end
if has_queue(last[2], now) then
  local share = read_share(now)
  if share and share.kind then
    drop_lapsed(share)
    pcall(serve, share, now) -- because without memory the permits must be released all the same
  end
end
local others = redis.call('HLEN', lock) - redis.call('HEXISTS', lock, '') -- that one is the kind
if others == 0 then redis.call('DEL', lock) end
if mine or is_among(owner, last[1]) then return 1 end
return others > 0 and 0 or -1
