-- Word for jobs that follow another one.
-- needs: lib/base codec/row codec/event

-- Leaves word, for jobs that follow this one, of ticks that ended or will not run.
local function tell(outbox, upstream, prev, nxt, tick, last, n, outcome, ms)
  redis.call('ZADD', outbox, int(ms), event_text({upstream = upstream, prev = prev, next = nxt, tick = tick, last = last, count = int(n),
    outcome = outcome, at = int(ms)}))
end

-- Whether an attempt of a tick has succeeded, of all its shards, since the cursor was set back to before it, if it was.
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

-- Leaves word of how a tick ended, which a run by hand is not. What becomes of another attempt of a tick that has succeeded is nobody's
-- business: word of the success may still wait for a follower, and would come after the other.
local function tell_end(k, history, r, outcome, ms)
  if r.request ~= '' or redis.call('HEXISTS', k.followers, r.job) == 0 then return end
  if r.trigger == 'rerun' and outcome ~= 'succeeded' and had_succeeded(history, r.tick) then return end
  tell(k.outbox, r.job, r.prev, r.next, r.tick, r.tick, 1, outcome, ms)
end
