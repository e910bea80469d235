-- Release a lock at this master, or withdraw a failed attempt. May be repeated: the
-- state keeps the last owner who released.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- ARGV  1 owner   2 its attempts up to this number
--       3 1 for a release, 0 to withdraw   4 life of the state in ms
--
-- Returns
--   1  released, now or before
--   0  another owner holds the lock
--  -1  nobody does
--   4  nobody does, and this master has lost its state
local owner, upto, release, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]

local value = redis.call('GET', lock)
local holder, _, attempt = holder_of(value)
if holder == owner and attempt > upto then return 0 end -- a repeated call; the owner has asked again since
local mine = value and holder == owner
if mine then redis.call('DEL', lock) end
if mine and not release and redis.call('HGET', state, 'g') == owner then
  redis.call('HSET', state, 'g', redis.call('HGET', state, 'pg') or '', 'gt', redis.call('HGET', state, 'pt') or '0')
end
if release then
  redis.call('HSET', state, mine and 'o' or 'u', owner)
  redis.call('PEXPIRE', state, keep)
end
if mine or redis.call('HGET', state, 'o') == owner then return 1 end
if value then return 0 end
if votes(server_id()) then return -1 end
return 4
