-- Renews a batch of leases: sets 'until' to now + ttl and counts the beat. A lapsed lease that was
-- not reaped still belongs to its holder and may be renewed. 'until' is a time of Redis' clock,
-- also for a caller with a wrong clock, whose lease must not be over. A run's progress is stored
-- only with a renewal: a run that was handed back since leaves nothing. The score in 'leases' is a
-- time of the caller's clock: the sweep finds a dead node's lease also if 'until' was stored by a
-- clock that was taken back. See reap.lua.
-- keys: runs leases kept gate incarnation
-- Returns {'server', id} and does nothing when the caller is of another epoch, else one text, a
-- word for each item, parted by commas: renewed, gone (also when the run was granted anew since),
-- or foreign.
-- needs: lib/base lib/epoch lib/lost codec/run
-- ARGV, written by gen from verbs.go:
--   now        the caller's idea of Redis' time, ms, 0 for none
--   skew       tolerated difference, ms
--   server     id of the caller's epoch, '' for any
-- then for each item:
--   run        id of the run
--   token      its token, '' for any
--   ttl        of the lease, ms
--   progress   the run's progress, '' if none was reported
local now, skew, server = ARGV[1], ARGV[2], ARGV[3]
local n = (#ARGV - 3) / 4
local function place(i) return 4 + (i - 1) * 4 end
local RUN, TOKEN, TTL, PROGRESS = 0, 1, 2, 3
-- end of ARGV
local _, ms = clock()
local held_to = believed(ms, now, skew)
if server ~= '' then
  local here = epoch_at(server_id())
  if elsewhere(server, here) then return {'server', here} end
end
local sub, match = string.sub, string.match
local ids, out, runs, leases, kept, size = {}, {}, {}, {}, {}, 0
local tills, scores, beats = {}, {}, {} -- reused texts: by ttl, a lease's end and its score; by beat, the next beat
for i = 1, n do ids[i] = ARGV[place(i) + RUN] end
local held = redis.call('HMGET', k.runs, unpack(ids))
for i = 1, n do
  if not held[i] and run_lost(ids[i]) then return {'server', (epoch_at(server_id()))} end
end
for i = 1, n do
  local a = place(i)
  local run, asked, ttl = held[i], ARGV[a + TOKEN], ARGV[a + TTL]
  local beat, at, token = match(run or '', RUN_BEAT)
  if beat and (asked == '' or asked == token) then
    if not tills[ttl] then tills[ttl], scores[ttl] = int(ms + ttl), int(held_to + ttl) end
    if not beats[beat] then beats[beat] = int(beat + 1) end
    runs[size + 1], runs[size + 2] = ids[i], '1|' .. tills[ttl] .. '|' .. beats[beat] .. '|' .. sub(run, at)
    leases[size + 1], leases[size + 2] = scores[ttl], ids[i]
    size = size + 2
    if ARGV[a + PROGRESS] ~= '' then
      kept[#kept + 1], kept[#kept + 2] = 'g:' .. ids[i], ARGV[a + PROGRESS]
    end
    out[i] = 'renewed'
  else
    out[i] = run and not beat and 'foreign' or 'gone'
  end
end
if size > 0 then
  redis.call('HSET', k.runs, unpack(runs))
  redis.call('ZADD', k.leases, unpack(leases))
end
if #kept > 0 then redis.pcall('HSET', k.kept, unpack(kept)) end -- no check: the next renewal repeats it
return table.concat(out, ',')
