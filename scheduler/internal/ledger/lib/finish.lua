-- Ending a run.
-- needs: lib/cancels lib/shards

-- Ends a run that was granted: writes its row, its output and payload, and an event for followers,
-- with the result. With fresh, attempts left and no cancel flag, the next attempt is pending and
-- holds the job. pause, ms, is of a retry on another node: the next attempt waits for so long, and
-- the caller has counted the attempts. freed is when the job became free. Returns false, and does
-- nothing, when the history is no list or the open tick of a shard cannot be read.
local function finish(k, history, e, id, r, row, outcome, output, fresh, freed, ms, keep, keep_for, result, pause)
  if unreadable(k.waiting, r.of) then return false end
  if not append(history, k.kept, row, e, ms, keep, keep_for) then return false end
  count(e, outcome, 1)
  local left = fresh ~= ''
  -- guard:attempts-capped P1 a crash leads to no more attempts than the job allows
  if left and not pause and tonumber(r.attempt) >= tonumber(r.most) then left = false end
  -- Redis may have lost the end of this run in a failover, while the next attempt runs already or
  -- is over.
  local going = left and redis.call('HEXISTS', k.runs, fresh) == 1
  local over = left and not going and find_row(history, fresh)
  local held, rerun = e.open == id, going or over or left and not wanted(k.cancels, id, r)
  if held then
    e.open = rerun and not over and fresh or ''
    free(e, r.mode, r.granted, freed, rerun and not over)
  end
  if output ~= '' then redis.call('HSET', k.kept, id, output) end
  if r.payload ~= '' then redis.call('HSET', k.kept, 'p:' .. id, r.payload) end
  if going or over then -- the next attempt adds the event
  elseif rerun then
    local at = int(ms + (pause or 0))
    redis.call('HSET', k.waiting, fresh, pending_text({job = r.job, tick = r.tick, shard = r.shard, shards = r.shards,
      attempt = int(r.attempt + 1), prev = '', next = '', trigger = r.trigger == 'backfill' and 'backfill' or 'rerun', request = r.request, at = at,
      holds = '1', of = r.of, param = r.param, payload = r.payload}))
    redis.call('ZADD', k.pending, at, fresh)
  elseif r.of ~= '' then
    part(k, history, e, r, outcome, freed, ms, keep, keep_for)
  elseif r.shards == '1' then -- not one shard's rerun
    notify_end(k, history, r, outcome, ms, result)
  end
  redis.call('HDEL', k.cancels, id)
  return true
end
