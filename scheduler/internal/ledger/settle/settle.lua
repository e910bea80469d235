-- Ends a batch of runs: releases the lease and records the outcome, once. The first terminal
-- outcome wins; a repeated settle gets its first answer.
-- keys: jobs runs leases pending waiting kept recent cancels outbox followers gate incarnation histories
-- Returns {'server', id} and does nothing when the caller is of another epoch, else one text, a
-- word for each item, parted by commas:
--   settled  recorded now, or recorded before by the same report
--   lost     another node ended the run before, and the row keeps this late report; or the run was
--            granted anew
--   unknown  no such run (any more)
--   foreign  a record that this version cannot read
-- needs: lib/base lib/epoch lib/lost
-- ARGV, written by gen from verbs.go:
--   now        the caller's idea of Redis' time, ms, 0 for none
--   skew       tolerated difference, ms
--   keep       rows to keep
--   keep_for   age to keep, ms
--   server     id of the caller's epoch, '' for any
-- then for each item, if it is a run that succeeded at its first try, without output or result:
--   none       ''
--   job        the job's name
--   run        its id
--   token      its token, '' for any
--   started    ms
--   ended      ms
-- then for each item, if it is any other:
--   outcome    the outcome's name
--   job        the job's name
--   run        its id
--   token      the run's token, '' for any
--   reason     the reason of the outcome
--   started    ms
--   ended      ms
--   pause      of a try that another node repeats: the wait before the next attempt, ms; the reporting node
--              has counted the attempts
--   tries      how often the function was called
--   error      the error's text
--   output     the end of the run's output
--   result     the run's result for its followers, JSON, or ''
--   fresh      id of the next attempt, if the outcome wants one and attempts are left; of a run that
--              succeeded, id of the run whose checkpoint is deleted; or ''
local now, skew, keep, keep_for, server = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local PLAIN, NONE, JOB, RUN, TOKEN, STARTED, ENDED = 6, 0, 1, 2, 3, 4, 5 -- how many, and their places
local HEAD, OTHER = 5, 13
local function other(a)
  return {outcome = ARGV[a], job = ARGV[a + 1], run = ARGV[a + 2], token = ARGV[a + 3], reason = ARGV[a + 4],
    started = ARGV[a + 5], ended = ARGV[a + 6], pause = ARGV[a + 7], tries = ARGV[a + 8],
    error = ARGV[a + 9], output = ARGV[a + 10], result = ARGV[a + 11], fresh = ARGV[a + 12]}
end
-- end of ARGV
local us, ms = clock(now, skew)
if server ~= '' then
  local here = epoch_at(server_id())
  if elsewhere(server, here) then return {'server', here} end
end
local n = #k.histories
local names, ids, at = {}, {}, {} -- by item: the job's name, the run, and the item's first place in ARGV
local a = HEAD + 1
for i = 1, n do
  names[i], ids[i], at[i] = ARGV[a + JOB], ARGV[a + RUN], a
  a = a + (ARGV[a] == '' and PLAIN or OTHER)
end
local raw, held = redis.call('HMGET', k.jobs, unpack(names)), redis.call('HMGET', k.runs, unpack(ids))
for i = 1, n do
  if not held[i] and run_lost(ids[i]) then return {'server', (epoch_at(server_id()))} end
end
local watched = redis.call('EXISTS', k.followers, k.cancels) > 0
local followed = watched and redis.call('HMGET', k.followers, unpack(names)) or {}

-- Whether a report is of another grant of the run.
local function other_grant(token, its)
  -- guard:settle-mine P2 a run is ended by the node that holds its token
  if token ~= '' and token ~= its then return true end
  return false
end

-- Stores the changed entries, and then removes the ended runs.
local function store(saved, ended_ids)
  redis.call('HSET', k.jobs, unpack(saved))
  -- guard:first-outcome P2 a run that has ended cannot end another way
  redis.call('HDEL', k.runs, unpack(ended_ids))
  redis.call('ZREM', k.leases, unpack(ended_ids))
end

-- needs: settle/plain

-- The slow path handles every item that is left.
-- needs: lib/rows lib/finish codec/run
if twice then raw, held = redis.call('HMGET', k.jobs, unpack(names)), redis.call('HMGET', k.runs, unpack(ids)) end
local entries, ended_now = {}, {}
saved, ended_ids = {}, {}

-- The report whose arguments begin at a place.
local function report(a)
  if ARGV[a] ~= '' then
    local c = other(a)
    local well = c.outcome == 'succeeded'
    c.next, c.saved = well and '' or c.fresh, well and c.fresh or ''
    return c
  end
  return {outcome = 'succeeded', token = ARGV[a + TOKEN], reason = '', started = ARGV[a + STARTED], ended = ARGV[a + ENDED], tries = '1',
    error = '', output = '', result = '', next = '', saved = '', pause = ''}
end

local function late(i, id, outcome, ended)
  local at, row = find_row(k.histories[i], id)
  if not at then return 'unknown' end -- also when the run was handed back and ran under another id
  -- guard:settle-repeated P2 a repeated report gets its first answer
  if row.outcome == outcome then return 'settled' end
  if row.late == '' then
    row.late = outcome .. ' ' .. ended
    redis.call('LSET', k.histories[i], at, row_text(row))
  end
  return 'lost'
end

for _, i in ipairs(left) do
  local job, id, c = names[i], ids[i], report(at[i])
  local r = run_of(held[i])
  local e = entries[job] or entry_of(raw[i])
  entries[job] = e
  if not held[i] or ended_now[id] then out[i] = late(i, id, c.outcome, c.ended)
  elseif not r or not e then out[i] = 'foreign'
  elseif other_grant(c.token, r.token) then out[i] = 'lost'
  elseif not finish(k, k.histories[i], e, id, r, end_row(id, r, c.outcome, c.reason, c.started, c.ended, c.tries, c.error), c.outcome,
    c.output, c.next, ms, ms, keep, keep_for, c.result, tonumber(c.pause)) then
    out[i] = 'foreign'
  else
    if c.saved ~= '' then redis.call('HDEL', k.kept, 's:' .. c.saved) end
    ended_now[id] = true
    ended_ids[#ended_ids + 1] = id
    out[i] = 'settled'
  end
end
if #ended_ids > 0 then
  local jobs = {}
  for job in pairs(entries) do jobs[#jobs + 1] = job end
  table.sort(jobs)
  for _, job in ipairs(jobs) do saved[#saved + 1], saved[#saved + 2] = job, entry_text(entries[job]) end
  store(saved, ended_ids)
end
return concat(out, ',')
