-- What the scripts of a lock share. Put in front of each, behind token.lua.
--
-- KEYS of all scripts but node.lua and repair.lua
--   1 lock   string "token:attempt:owner", with "-" in front once it was revoked
--   2 state  hash t, r: the last token and the id of the server that gave it;
--            g, gt: to whom, and with which token; pg, pt: the same of the one
--            before, which counts again when the request of the last is withdrawn;
--            h: who that is, for people; o: the last owner who gave the lock back
--            here; u: the last who gave it back without having it here
--   3 node   hash r: the server id under which this master votes; h: the largest token
--            it knows, of any lock; m: the longest ttl that any client may ask for, in
--            ms; q "ms:id": since when it is known to have lost its state
local lock, state, node = KEYS[1], KEYS[2], KEYS[3]

-- The format matters: '..' and tostring lose the last digits of a token.
local function digits(n) return string.format('%.0f', n) end

-- holder_of(value) -> owner, token, attempt, revoked; nil when the value is not ours.
local function holder_of(value)
  local minus, token, attempt, owner = string.match(value or '', '^(%-?)(%d+):(%d+):(.*)$')
  return owner, tonumber(token or 0), tonumber(attempt or 0), minus == '-'
end

local function value_of(token, attempt, owner)
  return digits(token) .. ':' .. digits(attempt) .. ':' .. owner
end

-- A master that was restarted, or has lost its marker, does not vote: what it
-- promised may be forgotten.
local function votes(rid) return redis.call('HGET', node, 'r') == rid end

-- counter(t, r, rid) -> the largest token that this lock may have had here. A
-- state that is missing, or from before a restart, is no proof: then it is the
-- largest of any lock.
local function counter(t, r, rid)
  local c = tonumber(t or 0) or 0
  if r ~= rid then c = math.max(c, tonumber(redis.call('HGET', node, 'h') or 0) or 0) end
  return c
end

-- remember(c, rid, owner, keep) makes c the lock's counter.
local function remember(c, rid, owner, keep)
  redis.call('HSET', state, 't', digits(c), 'r', rid, 'g', owner)
  redis.call('PEXPIRE', state, keep)
  if c > (tonumber(redis.call('HGET', node, 'h') or 0) or 0) then redis.call('HSET', node, 'h', digits(c)) end
end
