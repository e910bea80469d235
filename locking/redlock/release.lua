-- Give a lock back at this master, or withdraw a request for it that failed. May
-- be repeated: the state remembers who released last.
--
-- In front of this text stand token.lua and head.lua, which says what KEYS are.
--
-- ARGV  1 owner   2 up to which of its attempts; 9007199254740991 is a release
--       3 only with this token, 0 for any   4 life of the state in ms
--
-- Returns
--   1  released, now or before
--   0  another owner holds it
--  -1  nobody does
--   4  nobody does, and this master has lost its state
local owner, upto, only, keep = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local value = redis.call('GET', lock)
local holder, token, attempt = holder_of(value)
if only > 0 and token ~= only then return 0 end
local mine = value and holder == owner and attempt <= upto
if mine then redis.call('DEL', lock) end
if mine and upto < every_attempt and redis.call('HGET', state, 'g') == owner then
  redis.call('HSET', state, 'g', redis.call('HGET', state, 'pg') or '', 'gt', redis.call('HGET', state, 'pt') or '0')
end
if upto == every_attempt then
  redis.call('HSET', state, mine and 'o' or 'u', owner)
  redis.call('PEXPIRE', state, keep)
end
if mine or redis.call('HGET', state, 'o') == owner then return 1 end
if value then return 0 end
if votes(server_run_id()) then return -1 end
return 4
