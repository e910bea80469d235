-- Removes a job and all that is stored of it, but for its definitions, which tidy takes away when nobody announces them any
-- more, and for runs in flight: there must be none. Of its unique keys those are forgotten whose runs wait or stand in the history.
-- KEYS[1] jobs  KEYS[2] pauses  KEYS[3] due  KEYS[4] runs  KEYS[5] pending  KEYS[6] waiting  KEYS[7] kept
-- KEYS[8] followers  KEYS[9] history of the job  KEYS[10] cancels  KEYS[11] unique
-- KEYS[12] anew  and last the partition's gate
-- ARGV[1] job
-- Returns 'closed|state|move|words', or one word: removed, held, unknown, foreign (a record of it that waits cannot be read).
-- needs: lib/gate lib/waiting codec/entry codec/row codec/run codec/pending codec/tick
local shut = closed(KEYS[#KEYS])
if shut then return 'closed|' .. shut end
local job = ARGV[1]
if redis.call('HEXISTS', KEYS[1], job) == 0 then return 'unknown' end
if any(KEYS[4], run_of, job, function() return true end) then return 'held' end
if any(KEYS[6], pending_of, job, function() return false end) then return 'foreign' end
local all = redis.call('HGETALL', KEYS[6])
for i = 2, #all, 2 do
  local p = pending_of(all[i]) or tick_of(all[i])
  if p and p.job == job then
    redis.call('HDEL', KEYS[6], all[i - 1])
    redis.call('ZREM', KEYS[5], all[i - 1])
    redis.call('HDEL', KEYS[10], all[i - 1]) -- an open tick that somebody wanted ended
    redis.call('ZREM', KEYS[11], p.request)
  end
end
for _, row in ipairs(redis.call('LRANGE', KEYS[9], 0, -1)) do
  local _, _, run, request = string.match(row, ROW_RUN)
  if run then
    redis.call('HDEL', KEYS[7], run, 'p:' .. run)
    redis.call('ZREM', KEYS[11], request)
  end
end
local e = entry_of(redis.call('HGET', KEYS[1], job))
if e then redis.call('HDEL', KEYS[12], job .. '|' .. e.digest) end
for _, key in ipairs({KEYS[1], KEYS[2], KEYS[8]}) do redis.call('HDEL', key, job) end
redis.call('ZREM', KEYS[3], job)
redis.call('DEL', KEYS[9])
return 'removed'
