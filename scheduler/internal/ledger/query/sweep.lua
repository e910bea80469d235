-- Reads the overdue and pending records of a partition. Writes nothing.
-- keys: due leases runs pending waiting cancels outbox followers backfills jobs defs gate incarnation
-- Returns {job, cursor, ...}, {lapsed run, ...}, their records, {pending run, ...}, their records,
-- {run, its cancel flag, ...}, the rows, the newest rows, {upstream, its followers, ...} of all
-- rows, {backfill under way, ...}, {the partition's incarnation, '' when it or the gate is lost;
-- names of keys that have fewer records than there must be, parted by commas}; the last list is
-- empty with skip_rows ''
-- needs: codec/event codec/entry
-- ARGV, written by gen from verbs.go:
--   due_until  cursors until then, ms
--   lapsed_until leases that lapsed until then, ms
--   start_until runs that may start until then, ms
--   skip_due   how many cursors to pass over, '' to read none
--   skip_lapsed how many lapsed leases to pass over, '' to read none
--   skip_pending how many pending runs to pass over, '' to read none
--   most       most of each
--   skip_rows  how many rows of the outbox to pass over, '' to read no outbox, no cancel flags and no
--              backfills
--   most_rows  most rows of the outbox
--   both_ends  '1' to read its newest rows as well
local due_until, lapsed_until, start_until, skip_due, skip_lapsed, skip_pending, most, skip_rows, most_rows,
    both_ends = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
-- end of ARGV
local function upto(key, bound, skip, ...)
  if skip == '' then return {} end
  return redis.call('ZRANGEBYSCORE', key, '-inf', bound, 'LIMIT', skip, most, ...)
end

local function records(key, ids)
  if #ids == 0 then return {} end
  return redis.call('HMGET', key, unpack(ids))
end

local due = upto(k.due, due_until, skip_due, 'WITHSCORES')
local lapsed, pending = upto(k.leases, lapsed_until, skip_lapsed), upto(k.pending, start_until, skip_pending)
local cancels, rows, newest, followers, backfills, seen = {}, {}, {}, {}, {}, {}
if skip_rows ~= '' then
  cancels, backfills = redis.call('HGETALL', k.cancels), redis.call('HVALS', k.backfills)
  rows = redis.call('ZRANGE', k.outbox, skip_rows, skip_rows + most_rows - 1)
  if both_ends == '1' then newest = redis.call('ZRANGE', k.outbox, -most_rows, -1) end
end

-- Whether a job has a next tick, among the first 256 or so that HSCAN returns. Followers have none,
-- and neither have jobs whose schedule is over.
local function scheduled()
  local page = redis.call('HSCAN', k.jobs, '0', 'COUNT', 256)[2]
  for i = 2, #page, 2 do
    local e = entry_of(page[i])
    if e and e.cursor ~= '' then return true end
  end
  return false
end

-- Names of keys that have fewer records than another key implies: a job has a record in jobs, in
-- defs and, with a next tick, in due; a run has one in runs and in leases.
local function lacks()
  local function size(command, key)
    local n = redis.pcall(command, key)
    return type(n) == 'number' and n or 0 -- another kind of key: other scripts return that error
  end
  local entries, due, names = size('HLEN', k.jobs), size('ZCARD', k.due), {}
  local leased, running = size('ZCARD', k.leases), size('HLEN', k.runs)
  if entries < due then names[#names + 1] = 'jobs' end
  if due == 0 and entries > 0 and scheduled() then names[#names + 1] = 'due' end
  if size('HLEN', k.defs) < entries then names[#names + 1] = 'defs' end
  if running < leased then names[#names + 1] = 'runs' end
  if leased < running then names[#names + 1] = 'leases' end
  return table.concat(names, ',')
end

local state = {}
if skip_rows ~= '' then
  local gate = redis.call('GET', k.gate)
  state = {gate and redis.call('GET', k.incarnation) or '', lacks()}
end
for _, page in ipairs({rows, newest}) do
  for _, row in ipairs(page) do
    local job = string.match(row, EVENT_UPSTREAM) or string.match(row, SUCCESS_UPSTREAM)
    if job and not seen[job] then
      seen[job] = true
      followers[#followers + 1] = job
      followers[#followers + 1] = redis.call('HGET', k.followers, job) or ''
    end
  end
end
return {due, lapsed, records(k.runs, lapsed), pending, records(k.waiting, pending), cancels, rows, newest, followers, backfills, state}
