-- Claim a tick of an entry, unless it or a later one was claimed before. May be repeated with
-- the same token.
--
-- KEYS  1 the mark: the largest claimed tick and the token of its lease, "tick token"
-- ARGV  1 tick, in Unix ms   2 when its schedule fired, in Unix ms   3 token of the lease; 0 to
--         check only   4 how far the schedule may be from this server's clock, in ms   5 how long
--         the mark lives, in ms
--
-- Returns {code, text}:
--   0  refused; text is the largest claimed tick
--   1  claimed, or can be claimed; text is the tick
--   2  a lease with a larger token, the text, has claimed an earlier tick: this one has lapsed
--   3  too far from this server's clock; text is by how much, in ms
local mark = KEYS[1]
local tick, due, token, skew, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), ARGV[5]

local time = redis.call('TIME')
local ahead = due - (time[1] * 1000 + math.floor(time[2] / 1000))
-- guard:cron-skew P1 nobody claims a tick whose mark may have expired
if ahead > skew or ahead < -skew then return {3, string.format('%.0f', ahead)} end

local value = redis.call('GET', mark)
if value then
  local last, holder = string.match(value, '^(%d+) (%d+)$')
  if not last then return redis.error_reply('ERR the mark of a cron entry holds something else; see what else writes to it') end
  local repeated = last == tick and holder == token
  -- guard:cron-mark P1 a tick that a machine has claimed, and every earlier one, is refused
  if tonumber(last) >= tonumber(tick) and not repeated then return {0, last} end
  -- guard:cron-token P3 a lease that lapsed before its claim does not run after a later one
  if token ~= '0' and tonumber(holder) > tonumber(token) then return {2, holder} end
end
if token ~= '0' then redis.call('SET', mark, tick .. ' ' .. token, 'PX', keep) end
return {1, tick}
