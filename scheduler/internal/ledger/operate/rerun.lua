-- Puts the next attempt of an ended run into pending. The attempt's id follows from the run's, so a
-- repeated request, or the attempt after a crash, is the same run. Attempts of one tick come one
-- after another, so that no number is given twice; so do attempts of a run by hand, which have a
-- request and a tick's have none. The run may be a shard, or a whole sharded tick: its next attempt
-- is then opened under the current definition.
-- keys: jobs runs pending waiting kept history gate
-- Arguments: rerunArgs in operate.go.
-- Returns 'closed|state|move|words', or one word: queued (also when repeated), running (the run has
-- not ended), going (another attempt of its tick has not ended, or is still to come since a
-- rewind), unknown, full, foreign.
-- needs: lib/args lib/gate lib/base lib/windows lib/rows lib/waiting codec/entry codec/run codec/pending codec/tick
local job, id, fresh = args.job, args.run, args.fresh
local shut = closed(k.gate)
-- guard:rerun-gate P7 a partition that a move has closed takes no rerun
if shut then return 'closed|' .. shut end
local us, ms = clock(args.now, args.skew)
local text = redis.call('HGET', k.jobs, job)
if not text then return 'unknown' end
local e = entry_of(text)
if not e then return 'foreign' end
local ids = {fresh, unpack(args.successors)}
if under_way(k.runs, k.waiting, ids) then return 'queued' end
for _, known in ipairs(ids) do
  if find_row(k.history, known) then return 'queued' end
end
if under_way(k.runs, k.waiting, {id}) then return 'running' end
local at, row = find_row(k.history, id)
if not at then return 'unknown' end
local tick, shard, shards, request, of = row.tick, row.shard, row.shards, row.request, row.of
local attempt = row.kind == 'T' and row.tries or row.attempt -- the shards' rows may have left the history first
-- A run other than a shard may be opened, and then each shard gets the attempt's number.
local whole = row.kind == 'T' or shards == '1'
if whole then shard, shards = '0', '1' end

-- Whether a request is of the same kind: attempts of a run by hand have one, attempts of a tick
-- none.
local function alike(asked) return (asked == '') == (request == '') end

local function same(r) return r.tick == tick and (whole or r.shard == shard or r.shards == '1') and alike(r.request) end

local function payload()
  if of == '' then return redis.call('HGET', k.kept, 'p:' .. id) or '' end
  local t = tick_of(redis.call('HGET', k.waiting, of)) -- a shard that has ended before its tick
  return t and t.payload or redis.call('HGET', k.kept, 'p:' .. of) or ''
end

local bound = request == '' and pair(e.reattempt) or 0
local ahead = e.cursor ~= '' and tonumber(tick) >= tonumber(e.cursor) and tonumber(tick) < bound
-- guard:rerun-waits P1 attempts of a tick come one after another
if ahead or any(k.runs, run_of, job, same) or any(k.waiting, pending_of, job, same) then return 'going' end
for _, other in ipairs(redis.call('LRANGE', k.history, 0, -1)) do
  local also, t, s, n, a, highest, q = string.match(other, ROW_ENDED)
  if also == 'T' and whole then a = highest end
  local mine = whole or s == shard or also == 'T' and tonumber(shard) < tonumber(n)
  if t == tick and mine and alike(q) then attempt = math.max(attempt, a) end
end
if redis.call('ZCARD', k.pending) >= args.most then return 'full' end
redis.call('HSET', k.waiting, fresh, pending_text({job = job, tick = tick, shard = shard, shards = shards, attempt = int(attempt + 1),
  prev = '', next = '', trigger = 'rerun', request = request ~= '' and fresh or '', at = int(ms), holds = '', of = '', param = row.param,
  payload = payload()}))
redis.call('ZADD', k.pending, int(ms), fresh)
return 'queued'
