-- Shared by the scripts of a lock, and put before each, behind token.lua.
--
-- KEYS of all scripts but node.lua and repair.lua
--   1 lock   string "token:attempt:owner", with "-" in front once it was revoked
--   2 state  hash t, r: the last token and the id of the server that gave it;
--            g, gt: the owner and token of the last grant; pg, pt: of the one before,
--            which replaces the last when that is withdrawn; h: the holder's text;
--            o: the last owner who released the lock here; u: the last who released it
--            without having it here
--   3 node   hash r: the server id under which this master votes; h: its largest token
--            of any lock; m: the longest ttl of any client, in ms; q "ms:id": since
--            when the loss of its state has been known
local lock, state, node = KEYS[1], KEYS[2], KEYS[3]

-- digits(n) -> n as text. '..' and tostring would lose the last digits of a token.
local function digits(n) return string.format('%.0f', n) end

-- holder_of(value) -> owner, token, attempt, revoked; nil when the value is of another format.
local function holder_of(value)
  local minus, token, attempt, owner = string.match(value or '', '^(%-?)(%d+):(%d+):(.*)$')
  return owner, tonumber(token or 0), tonumber(attempt or 0), minus == '-'
end

local function value_of(token, attempt, owner)
  return digits(token) .. ':' .. digits(attempt) .. ':' .. owner
end

-- votes(rid) reports whether this master votes: not after a restart, nor without its
-- marker, because it may have lost its promises.
local function votes(rid) return redis.call('HGET', node, 'r') == rid end

-- counter(t, r, rid) -> the largest token that this lock may have had here. When the
-- state is missing, or from before a restart, that is the largest of any lock.
local function counter(t, r, rid)
  local c = tonumber(t or 0) or 0
  if r ~= rid then c = math.max(c, tonumber(redis.call('HGET', node, 'h') or 0) or 0) end
  return c
end

-- remember(c, rid, owner, keep) sets the lock's counter to c.
local function remember(c, rid, owner, keep)
  redis.call('HSET', state, 't', digits(c), 'r', rid, 'g', owner)
  redis.call('PEXPIRE', state, keep)
  if c > (tonumber(redis.call('HGET', node, 'h') or 0) or 0) then redis.call('HSET', node, 'h', digits(c)) end
end
