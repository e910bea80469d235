-- The joins of a job that follows several jobs: how these ended a tick. In 'joins', JOB has the
-- job's ticks, oldest first; JOB|TICK has the tick's join, and JOB|TICK|UPSTREAM the result of an
-- upstream's success.
-- needs: lib/base codec/join

-- The join of a tick, with the outcomes by upstream in 'by'; nil for none, 'foreign' when this
-- version cannot read the join.
local function read_join(joins, job, tick)
  local text = redis.call('HGET', joins, job .. '|' .. tick)
  if not text then return nil end
  local j = join_of(text)
  if not j then return 'foreign' end
  j.by = {}
  for name, outcome in string.gmatch(j.ends, '([^,=]+)=([^,]+)') do j.by[name] = outcome end
  return j
end

-- The ticks of a job that have a join, oldest first.
local function join_ticks(joins, job)
  local list = {}
  for tick in string.gmatch(redis.call('HGET', joins, job) or '', '%d+') do list[#list + 1] = tick end
  return list
end

local function forget_results(joins, job, tick, j)
  local fields = {}
  for name in pairs(j.by) do fields[#fields + 1] = job .. '|' .. tick .. '|' .. name end
  if #fields > 0 then redis.call('HDEL', joins, unpack(fields)) end
end

-- Removes all joins of a job.
local function forget_joins(joins, job)
  for _, tick in ipairs(join_ticks(joins, job)) do
    local j = read_join(joins, job, tick)
    if j and j ~= 'foreign' then forget_results(joins, job, tick, j) end
    redis.call('HDEL', joins, job .. '|' .. tick)
  end
  redis.call('HDEL', joins, job)
end
