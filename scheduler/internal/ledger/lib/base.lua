-- What nearly every script needs: Redis' clock, and how numbers are spelt.
-- needs: token

-- Lua prints numbers with 14 digits in Redis and 17 in miniredis: every number is spelt by this. n
-- is a number, not one spelt out already: miniredis would print nothing.
local function int(n) return string.format('%.0f', n) end

-- Redis' time, ms, held to within skew of the caller's idea of it; an idea of 0 is none. What a
-- script stores by it does not outlive a clock that its caller does not believe.
local function believed(ms, now, skew)
  now = tonumber(now)
  -- guard:clock-held P2 no time that is stored outlives a clock that the caller does not believe
  if now ~= 0 then ms = math.max(now - skew, math.min(ms, now + skew)) end
  return ms
end

-- Returns Redis' time, us and ms. With the caller's idea of it the second is held to that.
local function clock(now, skew)
  local us = server_micros()
  local ms = math.floor(us / 1000)
  return us, now and believed(ms, now, skew) or ms
end

-- Whether the caller's idea of Redis' time is wrong by more than skew.
local function clock_off(ms, now, skew)
  return math.abs(ms - tonumber(now)) > tonumber(skew)
end

-- How long before it is due a tick may be granted, ms. Its run starts when it is due.
local AHEAD = 500

-- How long Redis remembers that a job was created, s. Within that time nodes report its cursor from
-- before a failover.
local ANEW_FOR = 60
