-- Noting how the upstreams of a job ended a tick, until it is decided what becomes of the tick.
-- needs: lib/history lib/outbox lib/joins

-- How many ticks a job knows at most.
local JOINS_MAX = 1000

-- From the best outcome of an upstream to the worst. Of the last two, no tick has ended.
local WORSE = {succeeded = 1, skipped = 2, missed = 3, cancelled = 4, failed = 5, timed_out = 6, lost = 7, abandoned = 8, paused = 9,
  superseded = 10}

local function save_join(joins, job, tick, ups, j)
  local ends = {}
  for _, name in ipairs(ups) do
    if j.by[name] then ends[#ends + 1] = name .. '=' .. j.by[name] end
  end
  j.ends = table.concat(ends, ',')
  redis.call('HSET', joins, job .. '|' .. tick, join_text(j))
end

-- What a tick has come to: the worst outcome of all upstreams; nil while it is not decided.
local function joined(j, ups, when)
  local worst, all = 'succeeded', true
  for _, name in ipairs(ups) do
    local outcome = j.by[name]
    if not outcome then all = false
    elseif (WORSE[outcome] or 10) > WORSE[worst] then worst = outcome end
  end
  if WORSE[worst] > 8 or when == 'succeeded' and worst ~= 'succeeded' then return worst end
  -- guard:join-complete P2 a job that follows several others runs when all of them have ended the tick
  if not all then return nil end
  return worst
end

-- The results of a tick's upstreams, as a JSON object; '' when there are none.
local function joined_results(joins, job, tick, ups)
  local fields, parts = {}, {}
  for i, name in ipairs(ups) do fields[i] = job .. '|' .. tick .. '|' .. name end
  for i, result in ipairs(redis.call('HMGET', joins, unpack(fields))) do
    if result then parts[#parts + 1] = '"' .. ups[i] .. '":' .. result end
  end
  return #parts > 0 and '{' .. table.concat(parts, ',') .. '}' or ''
end

-- The ticks that rows of a history pass over, each as its first and its last.
local function passed_over(history)
  local list = {}
  for _, row in ipairs(redis.call('LRANGE', history, 0, -1)) do
    local r = range_of(row)
    if r and r.tick ~= '' and r.last ~= '' then list[#list + 1] = {tonumber(r.tick), tonumber(r.last)} end
  end
  return list
end

-- Gives up a tick. One that was not decided is recorded as missed, unless it is among those that rows pass over.
local function give_up_join(k, job, tick, e, history, over, ms, keep, keep_for)
  local j = read_join(k.joins, job, tick)
  redis.call('HDEL', k.joins, job .. '|' .. tick)
  if not j or j == 'foreign' then return end
  forget_results(k.joins, job, tick, j)
  if j.state ~= '' then return end
  local at = tonumber(tick)
  for _, r in ipairs(over) do
    if r[1] <= at and at <= r[2] then return end
  end
  pass(history, k.kept, e, '', tick, tick, 1, '', 'missed', 'upstream', '', ms, keep, keep_for)
  if redis.call('HEXISTS', k.followers, job) == 1 then notify(k.outbox, job, '', '', tick, tick, 1, 'missed', ms) end
end

-- Gives up all ticks of a job, which now follows others or none.
local function give_up_joins(k, job, e, history, ms, keep, keep_for)
  local over = passed_over(history)
  for _, tick in ipairs(join_ticks(k.joins, job)) do give_up_join(k, job, tick, e, history, over, ms, keep, keep_for) end
  redis.call('HDEL', k.joins, job)
end

-- Notes how an upstream ended a tick, and gives up ticks that are too many or too old. A success stays one. Returns the join.
local function note_end(k, history, job, tick, ups, upstream, outcome, result, e, ms, keep, keep_for)
  local j = read_join(k.joins, job, tick)
  if j == 'foreign' then return j end
  if not j then
    local list, over = join_ticks(k.joins, job), nil
    while #list > 0 do
      local oldest = read_join(k.joins, job, list[1])
      local old = not oldest or oldest == 'foreign' or tonumber(oldest.at) < ms - keep_for
      if #list < JOINS_MAX and not old then break end
      over = over or passed_over(history)
      give_up_join(k, job, table.remove(list, 1), e, history, over, ms, keep, keep_for)
    end
    list[#list + 1] = tick
    redis.call('HSET', k.joins, job, table.concat(list, ','))
    j = {at = int(ms), state = '', by = {}}
  end
  if j.by[upstream] ~= 'succeeded' and j.state ~= 'r' then
    j.by[upstream] = outcome == 'succeeded' and outcome or j.by[upstream] or outcome
    save_join(k.joins, job, tick, ups, j)
    if result ~= '' then redis.call('HSET', k.joins, job .. '|' .. tick .. '|' .. upstream, result) end
  end
  return j
end
