-- Puts the next attempt of a run that has ended into pending. Its id follows from the run's, so a
-- repeated request, and a crash that has led to it already, are one run. Attempts of one tick come one
-- after another, so that no number is given twice. The run may be a shard, or a sharded tick as a whole: then its next
-- attempt is opened as the definition then says.
-- KEYS[1] jobs  KEYS[2] runs  KEYS[3] pending  KEYS[4] waiting  KEYS[5] kept  KEYS[6] history of the job  and last the partition's gate
-- Returns 'closed|state|move|words', or one word: queued (also when repeated), running (it has not ended), going (another attempt of its
-- tick has not ended, or is still to come since the cursor was set back), unknown, full, foreign.
-- needs: lib/gate lib/base lib/windows lib/rows lib/waiting codec/entry codec/run codec/pending codec/tick
-- ARGV, written by gen from verbs.go:
--   job        the job's name
--   id         id of the run
--   fresh      id of the next attempt
--   most       most pending runs in this partition
--   then ids: the ids under which the next attempt may go on
local job, id, fresh, most =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local ids = {unpack(ARGV, 5)}
-- end of ARGV
local shut = closed(KEYS[#KEYS])
if shut then return 'closed|' .. shut end
local us, ms = clock()
local text = redis.call('HGET', KEYS[1], job)
if not text then return 'unknown' end
local e = entry_of(text)
if not e then return 'foreign' end
ids = {fresh, unpack(ids)}
if under_way(KEYS[2], KEYS[4], ids) then return 'queued' end
for _, known in ipairs(ids) do
  if find_row(KEYS[6], known) then return 'queued' end
end
if under_way(KEYS[2], KEYS[4], {id}) then return 'running' end
local at, row = find_row(KEYS[6], id)
if not at then return 'unknown' end
local tick, shard, shards, request, of = row.tick, row.shard, row.shards, row.request, row.of
local attempt = row.kind == 'T' and row.tries or row.attempt -- the rows of its shards may have left the history before it
-- What is no shard may be opened, and then each shard gets the number of its attempt.
local whole = row.kind == 'T' or shards == '1'
if whole then shard, shards = '0', '1' end

local function same(r) return r.tick == tick and (whole or r.shard == shard or r.shards == '1') and r.request == '' end

local function payload()
  if of == '' then return redis.call('HGET', KEYS[5], 'p:' .. id) or '' end
  local t = tick_of(redis.call('HGET', KEYS[4], of)) -- of a shard that has ended before the others
  return t and t.payload or redis.call('HGET', KEYS[5], 'p:' .. of) or ''
end

if request == '' then
  local bound = pair(e.again) or 0
  local ahead = e.cursor ~= '' and tonumber(tick) >= tonumber(e.cursor) and tonumber(tick) < bound
  -- guard:rerun-waits P1 attempts of a tick come one after another
  if ahead or any(KEYS[2], run_of, job, same) or any(KEYS[4], pending_of, job, same) then return 'going' end
  for _, other in ipairs(redis.call('LRANGE', KEYS[6], 0, -1)) do
    local also, t, s, n, a, highest, q = string.match(other, ROW_ENDED)
    if also == 'T' and whole then a = highest end
    local mine = whole or s == shard or also == 'T' and tonumber(shard) < tonumber(n)
    if t == tick and mine and q == '' then attempt = math.max(attempt, a) end
  end
end
if redis.call('ZCARD', KEYS[3]) >= most then return 'full' end
redis.call('HSET', KEYS[4], fresh, pending_text({job = job, tick = tick, shard = shard, shards = shards, attempt = int(attempt + 1),
  prev = '', next = '', trigger = 'rerun', request = request ~= '' and fresh or '', at = int(ms), holds = '', of = '', param = row.param,
  payload = payload()}))
redis.call('ZADD', KEYS[3], int(ms), fresh)
return 'queued'
