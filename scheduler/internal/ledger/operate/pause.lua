-- Pauses a job: its unclaimed ticks, up to the pause's end, will be recorded as paused. Or ends a
-- pause: ticks from now on run again. A pause that begins before the ticks of the previous pause
-- were accounted for starts at the previous one's beginning.
-- keys: jobs pauses gate
-- Arguments: pauseArgs in operate.go.
-- Returns 'closed|state|move|words', or one word: done, over (the end is in the past), unknown,
-- foreign.
-- needs: lib/args lib/gate lib/windows codec/entry codec/pause
local job, till = args.job, args.till or ''
local shut = closed(k.gate)
-- guard:pause-gate P7 a partition that a move has closed pauses and resumes nothing
if shut then return 'closed|' .. shut end
local us, ms = clock(args.now, args.skew)
local text = redis.call('HGET', k.jobs, job)
if not text then return 'unknown' end
local e = entry_of(text)
if not e then return 'foreign' end
local from, to = nil, nil
if e.pause ~= '' then from, to = pair(e.pause) end
if not args.resume then
  if till ~= '' and tonumber(till) <= ms then return 'over' end
  from = math.min(from or ms, ms, tonumber(e.cursor) or ms)
  e.pause = int(from) .. ',' .. till
  redis.call('HSET', k.pauses, job, pause_text({at = int(ms), till = till, author = args.author, reason = args.reason}))
elseif from and to > ms then
  e.pause = int(from) .. ',' .. int(ms)
  shed(e, ms)
  redis.call('HDEL', k.pauses, job)
else
  redis.call('HDEL', k.pauses, job)
  return 'done'
end
redis.call('HSET', k.jobs, job, entry_text(e))
return 'done'
