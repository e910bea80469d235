-- The token rule. Put in front of a script that grants leases; the granting
-- script keeps two values per fence, t (the last token) and r (the id of
-- the server that gave it, see server_id), in the same slot as the lease.
--
-- The token survives expiry of the lease, a clock that steps back, failovers
-- that lost writes, FLUSHALL and restarts without persistence, in any order as
-- long as a second lies between two of them, but not every chain that has a
-- clock stepping back in it. Kept for 24 h after the last grant it may expire:
-- the clock has passed it by then.

-- server_micros() -> the server's clock, microseconds since 1970, exact until
-- the year 2255. Read it once per script: two readings may differ.
local function server_micros()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- server_id() -> which master this is and since when: its replication id, new on
-- another server, after a restart, and each time that a replica becomes a master,
-- even one that was master before and has lost what it had not passed on. 'replica'
-- on one that is none. Where a service hides the replication id it is the run_id,
-- and '' where it forbids INFO in scripts: then a failover to a server whose clock
-- is behind is not covered.
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

-- next_token(t, r, now, rid, guard) -> the next token, as a string of digits.
-- t and r are as stored: strings, or false when there are none; now and guard
-- are numbers of microseconds. The format matters: '..' and tostring lose the
-- last digits of such numbers.
--
-- On a server that did not give t, newer tokens may have been lost. now + guard
-- is above them all: none was further ahead of the clock, unless servers changed
-- within a second of each other. If the clock has stepped back, t + 1 s is above
-- what at most a second's replication lost.
local function next_token(t, r, now, rid, guard)
  t = tonumber(t or 0) or 0
  local token = now
  -- guard:token-grows P3 a token exceeds the one before it, also when the clock has stepped back
  if t >= now then token = t + 1 end
  -- guard:token-jumps P3 it exceeds those that another server may have given, and that were lost
  if not (r and r == rid) then token = math.max(t + 1000000, now + guard) end
  return string.format('%.0f', token)
end
