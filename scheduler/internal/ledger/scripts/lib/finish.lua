-- Ending a run.
-- needs: lib/cancels lib/shards

-- Ends a run that was granted: its row, its lease, what is kept of it, word to those who follow. With
-- fresh, and attempts left, and nobody who wanted it ended, the next attempt is pending and holds the job
-- on. freed is when the job became free. Returns false, with nothing done, when the history is none, or the tick
-- that it is a shard of is not understood. k names the keys.
local function finish(k, history, e, id, r, row, outcome, output, fresh, freed, ms, keep, keep_for)
  if strange(k.waiting, r.of) then return false end
  if not append(history, k.kept, row, e, ms, keep, keep_for) then return false end
  count(e, outcome, 1)
  local left = fresh ~= ''
  -- guard:attempts-capped P1 a crash leads to no more attempts than the job allows
  if left and tonumber(r.attempt) >= tonumber(r.most) then left = false end
  -- A failover may have lost that this run had ended, and the next attempt is here already, or over.
  local going = left and redis.call('HEXISTS', k.runs, fresh) == 1
  local over = left and not going and find_row(history, fresh)
  local held, rerun = e.open == id, going or over or left and not wanted(k.cancels, id, r)
  if held then
    e.open = rerun and not over and fresh or ''
    free(e, r.mode, r.granted, freed, rerun and not over)
  end
  if output ~= '' then redis.call('HSET', k.kept, id, output) end
  if r.payload ~= '' then redis.call('HSET', k.kept, 'p:' .. id, r.payload) end
  if going or over then -- it tells what is to be told
  elseif rerun then
    redis.call('HSET', k.waiting, fresh, pending_text({job = r.job, tick = r.tick, shard = r.shard, shards = r.shards,
      attempt = int(r.attempt + 1), prev = '', next = '', trigger = 'rerun', request = r.request, at = int(ms),
      holds = '1', of = r.of, param = r.param, payload = r.payload}))
    redis.call('ZADD', k.pending, int(ms), fresh)
  elseif r.of ~= '' then
    part(k, history, e, r, outcome, freed, ms, keep, keep_for)
  elseif r.shards == '1' then -- not one shard's rerun
    tell_end(k, history, r, outcome, ms)
  end
  redis.call('HDEL', k.cancels, id)
  return true
end
