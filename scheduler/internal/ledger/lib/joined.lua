-- Notes how the upstreams of a job ended a tick, until the tick is decided.
-- needs: lib/history lib/outbox lib/joins lib/severity codec/row

-- How many ticks of a job have a join at most.
local JOINS_MAX = 1000

local function save_join(joins, job, tick, ups, j)
  local ends = {}
  for _, name in ipairs(ups) do
    if j.by[name] then ends[#ends + 1] = name .. '=' .. j.by[name] end
  end
  j.ends = table.concat(ends, ',')
  redis.call('HSET', joins, job .. '|' .. tick, join_text(j))
end

-- The outcome of a tick: the worst outcome of all upstreams; nil while undecided.
local function joined(j, ups, when)
  local worst, all = 'succeeded', true
  for _, name in ipairs(ups) do
    local outcome = j.by[name]
    if not outcome then all = false
    elseif (SEVERITY[outcome] or 10) > SEVERITY[worst] then worst = outcome end
  end
  if SEVERITY[worst] > 8 or when == 'succeeded' and worst ~= 'succeeded' then return worst end
  -- guard:join-complete P2 a job that follows several jobs runs when all of them have ended the
  -- tick
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

-- The ticks in a history's rows: ticks that ran; and for each row of other ticks, the first and the
-- last.
local function passed_over(rows)
  local over = {ran = {}}
  for _, row in ipairs(rows) do
    local own, _, _, request = string.match(row, ROW_RUN)
    local r = not own and range_of(row)
    if own then
      if request == '' then over.ran[tonumber(own)] = true end
    elseif r and r.tick ~= '' and r.last ~= '' then over[#over + 1] = {tonumber(r.tick), tonumber(r.last)} end
  end
  return over
end

local function has_tick(over, at)
  if over.ran[at] then return true end
  for _, r in ipairs(over) do
    if r[1] <= at and at <= r[2] then return true end
  end
  return false
end

-- Whether rows have a tick between first and last.
local function lie_among(over, first, last)
  for at in pairs(over.ran) do
    if first <= at and at <= last then return true end
  end
  for _, r in ipairs(over) do
    if r[1] <= last and first <= r[2] then return true end
  end
  return false
end

-- Gives up a tick. An undecided tick is recorded as missed, unless it has a row. Returns false, and
-- does nothing, for a join of a newer version.
local function give_up_join(k, job, tick, e, history, over, ms, keep, keep_for)
  local j = read_join(k.joins, job, tick)
  if j == 'foreign' then return false end
  redis.call('HDEL', k.joins, job .. '|' .. tick)
  if not j then return true end
  forget_results(k.joins, job, tick, j)
  if j.state ~= '' or has_tick(over, tonumber(tick)) then return true end
  pass(history, k.kept, e, '', tick, tick, 1, '', 'missed', 'upstream', '', ms, keep, keep_for)
  if redis.call('HEXISTS', k.followers, job) == 1 then notify(k.outbox, job, '', '', tick, tick, 1, 'missed', ms) end
  return true
end

-- Gives up all ticks of a job, whose upstreams have changed.
local function give_up_joins(k, job, e, history, ms, keep, keep_for)
  local list, left = join_ticks(k.joins, job), {}
  if #list == 0 then return end
  local over = passed_over(redis.call('LRANGE', history, 0, -1))
  for _, tick in ipairs(list) do
    if not give_up_join(k, job, tick, e, history, over, ms, keep, keep_for) then left[#left + 1] = tick end
  end
  if #left == 0 then redis.call('HDEL', k.joins, job) else redis.call('HSET', k.joins, job, table.concat(left, ',')) end
end

-- Gives up the oldest ticks of a job: ticks that are too old, and ticks beyond most. Returns the
-- ticks left, and whether any were given up; nil when a join of a newer version is in the way.
local function give_up_old(k, history, job, e, most, ms, keep, keep_for)
  local list, over = join_ticks(k.joins, job), nil
  while #list > 0 do
    local oldest = read_join(k.joins, job, list[1])
    local old = not oldest or oldest ~= 'foreign' and tonumber(oldest.at) < ms - keep_for
    if #list <= most and not old then break end
    over = over or passed_over(redis.call('LRANGE', history, 0, -1))
    if not give_up_join(k, job, list[1], e, history, over, ms, keep, keep_for) then return nil end
    table.remove(list, 1)
  end
  return list, over ~= nil
end

-- Notes how an upstream ended a tick, and gives up ticks that are too many or too old. A success
-- stays a success, with the result of the newest one. Returns the join.
local function note_end(k, history, job, tick, ups, upstream, outcome, result, e, ms, keep, keep_for)
  local j = read_join(k.joins, job, tick)
  if j == 'foreign' then return j end
  if not j then
    local list = give_up_old(k, history, job, e, JOINS_MAX - 1, ms, keep, keep_for)
    if not list then return 'foreign' end
    list[#list + 1] = tick
    redis.call('HSET', k.joins, job, table.concat(list, ','))
    j = {at = int(ms), state = '', by = {}}
  end
  if j.state ~= 'r' and (outcome == 'succeeded' or j.by[upstream] ~= 'succeeded') then
    j.by[upstream] = outcome == 'succeeded' and outcome or j.by[upstream] or outcome
    save_join(k.joins, job, tick, ups, j)
    local field = job .. '|' .. tick .. '|' .. upstream
    if result ~= '' then redis.call('HSET', k.joins, field, result)
    elseif outcome == 'succeeded' then redis.call('HDEL', k.joins, field) end -- of an earlier success
  end
  return j
end
