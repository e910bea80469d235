-- Shared by the scripts of a lock, and put before each, behind token.lua.
--
-- KEYS of all scripts but node.lua
--   1 lock   string "token:attempt:owner", with "-" in front once it was revoked
--   2 state  hash t, r: the largest token of this lock and the id of the server that
--            stored it; o: the last owner who released the lock here; h: the holder's text
--   3 node   hash r: the server id under which this master votes; h: its largest token
--            of any lock; m: the longest ttl of any client, in ms; q: its loss, see node.lua
local lock, state, node = KEYS[1], KEYS[2], KEYS[3]

-- digits(n) -> n as text. '..' and tostring would lose the last digits of a token.
local function digits(n) return string.format('%.0f', n) end

-- holder_of(value) -> owner, token, attempt, revoked; nil when the value is of another format.
local function holder_of(value)
  local minus, token, attempt, owner = string.match(value or '', '^(%-?)(%d+):(%d+):(.*)$')
  return owner, tonumber(token or 0), tonumber(attempt or 0), minus == '-'
end

-- own(rid) -> whether this master votes, its largest token, and the longest ttl. It does not
-- vote after a restart, nor without its marker, because it may have lost its promises.
local function own(rid)
  local s = redis.call('HMGET', node, 'r', 'h', 'm')
  return s[1] == rid, tonumber(s[2] or 0), tonumber(s[3] or 0)
end

-- known(rid, largest) -> the largest token that this lock may have had here, and who
-- released it last. When the state is missing, or from before a restart, that token is the
-- largest of any lock.
local function known(rid, largest)
  local s = redis.call('HMGET', state, 't', 'r', 'o')
  local c = tonumber(s[1] or 0)
  if s[2] ~= rid then c = math.max(c, largest) end
  return c, s[3]
end

-- hold(rid, token, attempt, owner, px, keep, c, largest, ...) sets the lock for px ms, and
-- keeps its token, and further fields of the state, for keep ms; c and largest are from
-- known and own.
local function hold(rid, token, attempt, owner, px, keep, c, largest, ...)
  redis.call('SET', lock, digits(token) .. ':' .. digits(attempt) .. ':' .. owner, 'PX', px)
  c = math.max(c, token)
  redis.call('HSET', state, 't', digits(c), 'r', rid, ...)
  redis.call('PEXPIRE', state, keep)
  if c > largest then redis.call('HSET', node, 'h', digits(c)) end
end
