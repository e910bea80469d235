-- Open ticks of sharded jobs.
-- needs: lib/history lib/holder lib/rows lib/outbox lib/severity codec/pending codec/tick

-- Opens a tick: the tick holds the job, and its shards are pending. p has the fields of its runs;
-- parts is 'N,param,param,...'.
local function open_tick(k, e, id, mode, parts, p, ms)
  local n, params = string.match(parts, '^(%d+)(.*)$')
  local waiting, pending = {}, {}
  local at = int(ms)
  p.of, p.at, p.holds, p.shards, p.shard, p.granted, p.mode = id, at, '', n, '0', at, mode
  p.left, p.bad, p.worst, p.top = n, '0', '', p.attempt
  local tick = tick_text(p)
  p.prev, p.next, p.payload = '', '', '' -- they are the tick's
  n = tonumber(n)
  local param = {}
  for one in string.gmatch(params, ',([^,]*)') do param[#param + 1] = one end
  for shard = 0, n - 1 do
    p.shard, p.param = int(shard), param[shard + 1] or ''
    local name = id .. '.' .. p.shard
    waiting[#waiting + 1], waiting[#waiting + 2] = name, pending_text(p)
    pending[#pending + 1], pending[#pending + 2] = at, name
  end
  redis.call('HSET', k.waiting, id, tick, unpack(waiting))
  redis.call('ZADD', k.pending, unpack(pending))
  redis.call('ZREM', k.pending, id)
  if mode == 'a' then
    if e.open == id then e.open = '' end
  elseif e.open ~= id then -- else the time of an attempt before it goes on
    e.open, e.busy = id, ''
  end
end

-- Whether this version cannot read the record of an open tick. Then none of the tick's shards can
-- end.
local function unreadable(waiting, of)
  local text = of ~= '' and redis.call('HGET', waiting, of)
  return text and not tick_of(text)
end

-- Ends a shard of an open tick for good. The last shard closes the tick: one row, with the worst
-- outcome, is the step of the cursor, and followers get an event.
local function part(k, history, e, r, outcome, freed, ms, keep, keep_for)
  local id = r.of
  local t = tick_of(redis.call('HGET', k.waiting, id))
  if not t then return end -- Redis has lost it
  t.left, t.top = int(t.left - 1), int(math.max(t.top, r.attempt))
  if outcome ~= 'succeeded' then t.bad = int(t.bad + 1) end
  if SEVERITY[outcome] > (SEVERITY[t.worst] or 0) then t.worst = outcome end
  -- guard:tick-closes-last P2 a tick of shards ends with the last of them, in one row
  if t.left ~= '0' then
    redis.call('HSET', k.waiting, id, tick_text(t))
    return
  end
  t.kind, t.shard, t.token, t.node, t.name, t.of, t.param = 'T', '0', '0', '', '', '', ''
  local reason = t.bad ~= '0' and t.bad .. ' of ' .. t.shards .. ' shards did not succeed' or ''
  append(history, k.kept, end_row(id, t, t.worst, reason, t.granted, int(ms), t.top, ''), e, ms, keep, keep_for)
  if t.payload ~= '' then redis.call('HSET', k.kept, 'p:' .. id, t.payload) end
  if e.open == id then
    e.open = ''
    free(e, t.mode, t.granted, freed, false)
  end
  notify_end(k, history, t, t.worst, ms)
  redis.call('HDEL', k.waiting, id)
  redis.call('HDEL', k.cancels, id)
end
