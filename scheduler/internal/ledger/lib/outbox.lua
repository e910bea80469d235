-- Events for jobs that follow another job.
-- needs: lib/base codec/row codec/event

-- Adds an event to the outbox: ticks of the job that its followers wait for have ended, or will not
-- run.
local function notify(outbox, upstream, prev, nxt, tick, last, n, outcome, ms, result)
  local text = (result or '') == '' and event_text or success_text
  redis.call('ZADD', outbox, int(ms), text({upstream = upstream, prev = prev, next = nxt, tick = tick, last = last, count = int(n),
    outcome = outcome, at = int(ms), payload = result}))
end

-- Whether the tick has succeeded, in any attempt, since the last rewind to before the tick.
local function had_succeeded(history, tick)
  local rows, found = redis.pcall('LRANGE', history, 0, -1), false
  for _, row in ipairs(rows.err and {} or rows) do
    local r = range_of(row)
    if r and r.outcome == 'superseded' and r.reason == 'rewound' and tonumber(r.next) <= tonumber(tick) then
      found = false
    elseif not found and string.find(row, '|' .. tick .. '|', 1, true) then
      local kind, t, shards, request, outcome = string.match(row, ROW_OUTCOME)
      found = t == tick and request == '' and outcome == 'succeeded' and (kind == 'T' or shards == '1')
    end
  end
  return found
end

-- Adds an event for the end of a tick; a run by hand has none. A rerun of a tick that has succeeded
-- adds only further successes: the event of the first success may still be in the outbox, and would
-- be delivered after a failure.
local function notify_end(k, history, r, outcome, ms, result)
  if r.request ~= '' or redis.call('HEXISTS', k.followers, r.job) == 0 then return end
  if r.trigger == 'rerun' and outcome ~= 'succeeded' and had_succeeded(history, r.tick) then return end
  notify(k.outbox, r.job, r.prev, r.next, r.tick, r.tick, 1, outcome, ms, result)
end
