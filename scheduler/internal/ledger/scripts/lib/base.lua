-- What nearly every script needs: Redis' clock, and how numbers are spelt.
-- needs: token

-- Lua prints numbers with 14 digits in Redis and 17 in miniredis: every number is spelt by this. n is a
-- number, not one spelt out already: miniredis would print nothing.
local function int(n) return string.format('%.0f', n) end

local function clock()
  local us = server_micros()
  return us, math.floor(us / 1000)
end

-- The rule against every clock trouble: true when the caller's idea of our time is wrong.
local function astray(ms, now, skew)
  return math.abs(ms - tonumber(now)) > tonumber(skew)
end

-- How long before it is due a tick may be granted, ms. Its run starts when it is due.
local AHEAD = 500

-- For how long it is remembered that a job was made anew, s: nodes tell where it stood before, if Redis has lost it.
local ANEW_FOR = 60

-- Whether the caller knows another server than this one, or this one before it was restarted: what it knows of
-- its runs may be lost here. '' is a caller that does not mind.
local function elsewhere(known, here) return known ~= '' and known ~= here end
