-- Compare a token, and call the function effect only when the token is current. The
-- function stands before this text; its body is the user's script.
--
-- KEYS  1 the fence: string, the largest token in digits   2... of the effect
-- ARGV  1 token   2 life of the fence in ms, 0 for ever   3... of the effect
--
-- Returns
--   {1, reply}   accepted and stored; the reply of the effect
--   {0, token}   stale; the stored token, in digits
--   {2, value}   the fence holds a value that is no token
--
-- Tokens are stored as they came: '..' and tostring would lose the last digits. As
-- numbers they are only compared, exact below 2^53.
local fence, token, keep = KEYS[1], ARGV[1], ARGV[2]

local function from(list, first)
  local rest = {}
  for i = first, #list do rest[#rest + 1] = list[i] end
  return rest
end

local stored = redis.call('GET', fence)
if stored then
  if #stored > 16 or not string.match(stored, '^%d+$') then return {2, stored} end
  -- guard:fence-redis P5 a token smaller than one that was seen is refused
  if tonumber(stored) > tonumber(token) then return {0, stored} end
end
if keep == '0' then
  redis.call('SET', fence, token)
else
  redis.call('SET', fence, token, 'PX', keep)
end
return {1, effect(from(KEYS, 2), from(ARGV, 3))}
