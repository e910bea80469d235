-- Pauses a job: ticks that nobody has claimed yet, and those up to the end, will be recorded as
-- paused. Or ends a pause: ticks from now on run again. A pause that begins before the ticks of the
-- one before it were accounted for goes on from that one's beginning.
-- KEYS[1] jobs  KEYS[2] pauses  and last the partition's gate
-- Returns 'closed|state|move|words', or one word: done, over (the end lies behind), unknown, foreign.
-- needs: lib/gate lib/windows codec/entry codec/pause
-- ARGV, written by gen from verbs.go:
--   job        the job's name
--   what       pause or resume
--   author     who wants it
--   reason     why
--   till       end, ms, '' for none
local job, what, author, reason, till =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
-- end of ARGV
local shut = closed(KEYS[#KEYS])
if shut then return 'closed|' .. shut end
local us, ms = clock()
local text = redis.call('HGET', KEYS[1], job)
if not text then return 'unknown' end
local e = entry_of(text)
if not e then return 'foreign' end
local from, to = nil, nil
if e.pause ~= '' then from, to = pair(e.pause) end
if what == 'pause' then
  if till ~= '' and tonumber(till) <= ms then return 'over' end
  from = math.min(from or ms, ms, tonumber(e.cursor) or ms)
  e.pause = int(from) .. ',' .. till
  redis.call('HSET', KEYS[2], job, pause_text({at = int(ms), till = till, author = author, reason = reason}))
elseif from and to > ms then
  e.pause = int(from) .. ',' .. int(ms)
  shed(e, ms)
  redis.call('HDEL', KEYS[2], job)
else
  redis.call('HDEL', KEYS[2], job)
  return 'done'
end
redis.call('HSET', KEYS[1], job, entry_text(e))
return 'done'
