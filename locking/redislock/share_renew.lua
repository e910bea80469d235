-- Renew a holder of permits for another ttl, if this grant holds them. May be repeated.
--
-- KEYS  1 the holders, see share.lua. Not the other keys: see renew.lua.
-- ARGV  1 owner   2 token   3 ttl and delay in ms
--
-- Returns 1 renewed, 0 not held any more, 2 not held any more, because it was revoked.
local lock, owner, token, px = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])

local lapses, minus, given, rest = string.match(redis.call('HGET', lock, owner) or '', '^(%d+) (%-?)(%d+) (.*)$')
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
-- guard:share-renew-owner P4 permits that have lapsed, or that another grant has, are not renewed
if given ~= token or tonumber(lapses) < now then return 0 end
if minus == '-' then return 2 end
-- First, because a server without memory refuses HSET as the first write of a script, and no later one.
redis.call('PEXPIRE', lock, math.max(px, redis.call('PTTL', lock)))
redis.call('HSET', lock, owner, string.format('%.0f', now + px) .. ' ' .. given .. ' ' .. rest)
return 1
