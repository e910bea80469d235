-- Ends a batch of runs: releases the lease, records the outcome, once. The first terminal
-- outcome wins; asked again, a settle gives the answer it gave before.
-- KEYS[1] jobs  KEYS[2] runs  KEYS[3] leases  KEYS[4] pending  KEYS[5] waiting  KEYS[6] kept
-- KEYS[7] cancels  KEYS[8] outbox  KEYS[9] followers  KEYS[9+i] history of item i's job
-- ARGV[1] rows to keep  ARGV[2] age to keep, ms  ARGV[3] run_id of the server that the caller knows, '' for any
-- then 11 for each item: job, run, token ('' for any), outcome, reason, started ms, ended ms, tries, error, output,
--   and the run id of the next attempt, if this end asks for one and there are attempts left, or ''
-- Returns {'server', run_id} and does nothing when the caller knows another server, else one word for each item:
--   settled  recorded now, or already recorded by this same report
--   lost     somebody else ended the run before, and the report is kept beside that outcome; or was granted it since
--   unknown  nobody knows this run (any more)
--   foreign  a record that this version does not understand
local keep, keep_for = ARGV[1], ARGV[2]
local us, ms = clock()
if ARGV[3] ~= '' then
  local here = server_run_id()
  if elsewhere(ARGV[3], here) then return {'server', here} end
end
local HEAD, STRIDE, FIRST = 3, 11, 9
local n = (#ARGV - HEAD) / STRIDE
local names, ids = {}, {}
for i = 1, n do names[i], ids[i] = ARGV[HEAD + 1 + (i - 1) * STRIDE], ARGV[HEAD + 2 + (i - 1) * STRIDE] end
local raw, held = redis.call('HMGET', KEYS[1], unpack(names)), redis.call('HMGET', KEYS[2], unpack(ids))
local k = {runs = KEYS[2], pending = KEYS[4], waiting = KEYS[5], kept = KEYS[6], cancels = KEYS[7], outbox = KEYS[8], followers = KEYS[9]}
local entries, out, saved, gone = {}, {}, {}, {}

local function late(i, id, outcome, ended)
  local at, head, was, noted, err = find_row(KEYS[FIRST + i], id)
  if not at then return 'unknown' end -- also when it was handed back and ran under another id
  -- guard:settle-repeated P2 a report that is repeated gets the answer it got before
  if was == outcome then return 'settled' end
  if noted == '' then
    redis.call('LSET', KEYS[FIRST + i], at, head .. '|' .. outcome .. ' ' .. ended .. '|' .. err)
  end
  return 'lost'
end

for i = 1, n do
  local a = HEAD + 1 + (i - 1) * STRIDE
  local job, id, token, outcome, reason, started, ended, tries, err, output, fresh = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3],
    ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8], ARGV[a + 9], ARGV[a + 10]
  local r = run_of(held[i])
  local e = entries[job] or entry_of(raw[i])
  entries[job] = e
  local mine = true
  -- guard:settle-mine P2 a run is ended by whoever holds its token
  if r and token ~= '' and token ~= r.token then mine = false end
  if not held[i] or gone[id] then out[i] = late(i, id, outcome, ended)
  elseif not r or not e then out[i] = 'foreign'
  elseif not mine then out[i] = 'lost'
  elseif not finish(k, KEYS[FIRST + i], e, id, r, row_text(id, r, outcome, reason, started, ended, tries, err), outcome, output,
    fresh, ms, ms, keep, keep_for) then
    out[i] = 'foreign'
  else
    gone[id] = true
    gone[#gone + 1] = id
    out[i] = 'settled'
  end
end
for job, e in pairs(entries) do saved[#saved + 1] = job end
if #gone > 0 then
  table.sort(saved)
  local fields = {}
  for _, job in ipairs(saved) do fields[#fields + 1], fields[#fields + 2] = job, entry_text(entries[job]) end
  redis.call('HSET', KEYS[1], unpack(fields))
  -- guard:first-outcome P2 a run that has ended cannot end another way
  redis.call('HDEL', KEYS[2], unpack(gone))
  redis.call('ZREM', KEYS[3], unpack(gone))
end
return out
