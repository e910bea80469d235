-- The token rule, for the beginning of a script that grants leases. The granting script
-- stores two values per lock, t (the last token) and r (the id of the server that gave
-- it, see server_id), in the slot of the lease.
--
-- Tokens increase across an expired lease, a clock that steps back, failovers that lost
-- writes, FLUSHALL and restarts without persistence, in any order with at least a second
-- between two of them, but not across every sequence with a clock that steps back. The
-- values may expire 24 h after the last grant: the clock has passed t by then.

-- server_micros() -> the server's clock, microseconds since 1970, exact until
-- the year 2255. Read it once per script: two readings may differ.
local function server_micros()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- server_id() -> the master's replication id. It changes with the server, with a restart, and each
-- time that a replica becomes a master, also a former master that lost writes. On a replica it is
-- 'replica'. Where a service hides the replication id it is the run_id. Where INFO is forbidden in
-- scripts it is '', and a failover to a server whose clock is behind is not covered.
local function server_id()
  local info, word = redis.pcall('INFO', 'replication'), 'master_replid:'
  if type(info) ~= 'string' then return '' end
  -- guard:replica-apart P1 a replica, which shares its master's id, is never taken for it: its answers may be old
  if string.find(info, 'role:slave', 1, true) then return 'replica' end
  local _, at = string.find(info, word, 1, true) -- plain, which takes half the time of a pattern
  if not at then
    info, word = redis.pcall('INFO', 'server'), 'run_id:'
    if type(info) ~= 'string' then return '' end
    _, at = string.find(info, word, 1, true)
  end
  return at and string.match(info, '^%w+', at + 1) or ''
end

-- next_token(t, r, now, rid, guard) -> the next token, as digits. t and r are as stored:
-- strings, or false; now and guard are microseconds. '..' and tostring would lose the
-- last digits.
--
-- When another server gave t, later tokens may have been lost. now + guard is above them
-- all: none was further ahead of the clock, unless servers changed within a second. If the
-- clock has stepped back, t + 1 s is above the tokens of the last second, which may be lost.
local function next_token(t, r, now, rid, guard)
  t = tonumber(t or 0) or 0
  local token = now
  -- guard:token-grows P3 a token exceeds the one before it, also when the clock has stepped back
  if t >= now then token = t + 1 end
  -- guard:token-jumps P3 it exceeds those that another server may have given, and that were lost
  if not (r and r == rid) then token = math.max(t + 1000000, now + guard) end
  return string.format('%.0f', token)
end
