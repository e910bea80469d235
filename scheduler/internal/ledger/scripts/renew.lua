-- Renews a batch of leases: moves 'until' to now + ttl and counts the beat. A lease that lapsed
-- and that nobody reaped is still its holder's and may be renewed. 'until' goes by Redis' clock, whatever the caller believes: for a node
-- that believes another clock the lease must not be over. How far a run is, is stored with its renewal alone: a run that was handed back
-- meanwhile leaves nothing. Where the lease stands in 'leases' goes by the caller's idea: the sweep finds
-- the lease when its node is dead, also if 'until' was stored by a clock that was taken back. See reap.lua.
-- keys: runs leases kept gate incarnation
-- Returns {'server', id} and does nothing when the caller knows another epoch, else one text, a word for each item, parted by
-- commas: renewed, gone (also when somebody was granted the run since), or foreign.
-- needs: lib/base lib/epoch lib/lost codec/run
-- ARGV, written by gen from verbs.go:
--   now        the caller's idea of Redis' time, ms, 0 for none
--   skew       tolerated difference, ms
--   server     id of the epoch that the caller knows, '' for any
-- then for each item:
--   run        id of the run
--   token      its token, '' for any
--   ttl        of the lease, ms
--   progress   how far it is, '' if it has not said
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
local tills, scores, beats = {}, {}, {} -- what was spelt out: when a lease ends and its place, by its ttl, and the beat after another one
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
if #kept > 0 then redis.pcall('HSET', k.kept, unpack(kept)) end -- nothing depends on it: the next renewal repeats it
return table.concat(out, ',')
