-- Cancels a run for an operator. A run in flight gets a cancel flag, which its node reads with its
-- next sweep. A pending run is recorded as cancelled, unless a move has closed the partition. An
-- open tick gets one flag for all its shards.
-- keys: jobs runs pending waiting kept recent cancels outbox followers history gate
-- Arguments: cancelArgs in operate.go.
-- Returns one word: told (the flag is set), cancelled (also when repeated), ended, unknown,
-- foreign; or 'closed|state|move|words'.
-- needs: lib/args lib/gate lib/rows lib/cancels lib/history lib/shards codec/entry codec/run codec/tick codec/pending
local job, id = args.job, args.run
local us, ms = clock(args.now, args.skew)
local e = entry_of(redis.call('HGET', k.jobs, job))
if not e then return redis.call('HEXISTS', k.jobs, job) == 1 and 'foreign' or 'unknown' end
local run = redis.call('HGET', k.runs, id)
if run then
  local r = run_of(run)
  if r and r.job ~= job then return 'unknown' end
  raise(k.cancels, id, ms, args.author, args.reason)
  return 'told'
end
local text = redis.call('HGET', k.waiting, id)
if not text then
  local at, row = find_row(k.history, id)
  if not at then return 'unknown' end
  return row.outcome == 'cancelled' and 'cancelled' or 'ended'
end
local shut = closed(k.gate)
local tick = tick_of(text)
if tick then
  if tick.job ~= job then return 'unknown' end
  -- guard:cancel-open-gate P7 behind a gate that a move has closed, no open tick is cancelled: the
  -- tick may be moved
  if shut then return 'closed|' .. shut end
  raise(k.cancels, id, ms, args.author, args.reason)
  return 'told'
end
local p = pending_of(text)
if not p then return 'foreign' end
if p.job ~= job then return 'unknown' end
-- guard:cancel-gate P7 behind a gate that a move has closed, no pending run is cancelled: the run
-- may be moved
if shut then return 'closed|' .. shut end
if unreadable(k.waiting, p.of) then return 'foreign' end
p.token, p.node, p.name = '0', '', ''
local why = reason_of(cancel_text({at = '0', author = args.author, reason = args.reason}))
if not append(k.history, k.kept, end_row(id, p, 'cancelled', why, int(ms), int(ms), '0', ''), e, ms, args.keep, args.keep_for) then return 'foreign' end
count(e, 'cancelled', 1)
if p.payload ~= '' then redis.call('HSET', k.kept, 'p:' .. id, p.payload) end
if p.of ~= '' then
  part(k, k.history, e, p, 'cancelled', ms, ms, args.keep, args.keep_for)
elseif p.shards == '1' and (p.holds ~= '' or p.trigger ~= 'rerun') then -- an operator's rerun follows an end that has its event
  notify_end(k, k.history, p, 'cancelled', ms)
end
if e.open == id then let_go(e, ms) end
redis.call('HSET', k.jobs, job, entry_text(e))
redis.call('HDEL', k.waiting, id)
redis.call('ZREM', k.pending, id)
return 'cancelled'
