-- Hands back granted runs whose function was never called: pending again, same attempt, under a
-- fresh run id. The old id is burnt: a delayed copy of its claim finds nothing to take. A run with
-- a cancel flag is recorded as cancelled.
-- keys: jobs runs leases pending waiting kept recent cancels outbox followers gate incarnation histories
-- Returns {'server', id} and does nothing when the caller is of another epoch, else one word for
-- each item: returned (also when repeated), lost, foreign.
-- needs: lib/epoch lib/lost lib/finish lib/rows codec/entry codec/run codec/pending
-- ARGV, written by gen from verbs.go:
--   now        the caller's idea of Redis' time, ms, 0 for none
--   skew       tolerated difference, ms
--   keep       rows to keep
--   keep_for   age to keep, ms
--   server     id of the caller's epoch, '' for any
-- then for each item:
--   job        the job's name
--   id         id of the run
--   token      the run's token, '' for any
--   fresh      id of the run that may follow
local now, skew, keep, keep_for, server = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local n = (#ARGV - 5) / 4
local function item(i)
  local a = 6 + (i - 1) * 4
  return {job = ARGV[a], id = ARGV[a + 1], token = ARGV[a + 2], fresh = ARGV[a + 3]}
end
-- end of ARGV
local us, ms = clock(now, skew)
local here = epoch_at(server_id())
if elsewhere(server, here) then return {'server', here} end
for i = 1, n do
  local id = item(i).id
  if redis.call('HEXISTS', k.runs, id) == 0 and run_lost(id) then return {'server', (epoch_at(server_id()))} end
end
local out = {}

local function back(i, job, id, fresh, r, e)
  local flag = wanted(k.cancels, id, r)
  if flag then
    if not finish(k, k.histories[i], e, id, r, end_row(id, r, 'cancelled', reason_of(flag), r.granted, int(ms), '0', ''), 'cancelled', '',
      '', ms, ms, keep, keep_for) then return 'foreign' end
    redis.call('HSET', k.jobs, job, entry_text(e))
  else
    if r.trigger == 'manual' and r.request == '' then r.request = id end
    r.at, r.holds = int(ms), '1'
    redis.call('HSET', k.waiting, fresh, pending_text(r))
    redis.call('ZADD', k.pending, r.at, fresh)
    local said = redis.call('HGET', k.kept, 'g:' .. id)
    if said then
      redis.call('HSET', k.kept, 'g:' .. fresh, said) -- for the row, if the tick is then missed
      redis.call('HDEL', k.kept, 'g:' .. id)
    end
    if e.open == id then
      e.open = fresh
      free(e, r.mode, r.granted, ms, true) -- as for an attempt that follows: ticks came due behind this one
      redis.call('HSET', k.jobs, job, entry_text(e))
    end
  end
  -- guard:unclaim-burns P1 the id of a run that was handed back grants nothing any more
  redis.call('HDEL', k.runs, id)
  redis.call('ZREM', k.leases, id)
  return 'returned'
end

for i = 1, n do
  local c = item(i)
  local text = redis.call('HGET', k.runs, c.id)
  local r = run_of(text)
  local e = entry_of(redis.call('HGET', k.jobs, c.job))
  if not text then
    out[i] = redis.call('HEXISTS', k.waiting, c.fresh) == 1 and not find_row(k.histories[i], c.id) and 'returned' or 'lost'
  elseif not r or not e then out[i] = 'foreign'
  elseif c.token ~= '' and c.token ~= r.token then out[i] = 'lost'
  else out[i] = back(i, c.job, c.id, c.fresh, r, e)
  end
end
return out
