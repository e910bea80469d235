-- Ends a run by an operator's wish: one that is going is told by its node's next look, a pending one
-- is recorded as cancelled, unless a move has closed the partition: then it waits, or goes, at the other side. Of an open tick, all shards are told, those that are pending when they are claimed.
-- KEYS[1] jobs  KEYS[2] runs  KEYS[3] pending  KEYS[4] waiting  KEYS[5] kept  KEYS[6] cancels
-- KEYS[7] outbox  KEYS[8] followers  KEYS[9] history of the job  KEYS[10] gate
-- Returns one word: told, cancelled (also when repeated), ended, unknown, foreign; or 'closed|' and what closed() says.
-- needs: lib/gate lib/rows lib/cancels lib/history lib/shards codec/entry codec/run codec/tick codec/pending
-- ARGV, written by gen from verbs.go:
--   job        the job's name
--   id         id of the run
--   author     who wants it
--   reason     why
--   keep       rows to keep
--   keep_for   age to keep, ms
local job, id, author, reason, keep, keep_for =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
-- end of ARGV
local us, ms = clock()
local e = entry_of(redis.call('HGET', KEYS[1], job))
if not e then return redis.call('HEXISTS', KEYS[1], job) == 1 and 'foreign' or 'unknown' end
local run = redis.call('HGET', KEYS[2], id)
if run then
  local r = run_of(run)
  if r and r.job ~= job then return 'unknown' end
  raise(KEYS[6], id, ms, author, reason)
  return 'told'
end
local text = redis.call('HGET', KEYS[4], id)
if not text then
  local at, row = find_row(KEYS[9], id)
  if not at then return 'unknown' end
  return row.outcome == 'cancelled' and 'cancelled' or 'ended'
end
local shut = closed(KEYS[10])
local tick = tick_of(text)
if tick then
  if tick.job ~= job then return 'unknown' end
  if shut then return 'closed|' .. shut end
  raise(KEYS[6], id, ms, author, reason)
  return 'told'
end
local p = pending_of(text)
if not p then return 'foreign' end
if p.job ~= job then return 'unknown' end
if shut then return 'closed|' .. shut end
if strange(KEYS[4], p.of) then return 'foreign' end
p.token, p.node, p.name = '0', '', ''
local why = reason_of(cancel_text({at = '0', author = author, reason = reason}))
if not append(KEYS[9], KEYS[5], end_row(id, p, 'cancelled', why, int(ms), int(ms), '0', ''), e, ms, keep, keep_for) then return 'foreign' end
count(e, 'cancelled', 1)
if p.payload ~= '' then redis.call('HSET', KEYS[5], 'p:' .. id, p.payload) end
local k = {waiting = KEYS[4], kept = KEYS[5], cancels = KEYS[6], outbox = KEYS[7], followers = KEYS[8]}
if p.of ~= '' then
  part(k, KEYS[9], e, p, 'cancelled', ms, ms, keep, keep_for)
elseif p.shards == '1' and (p.holds ~= '' or p.trigger ~= 'rerun') then -- an operator's attempt comes after an end that was told
  tell_end(k, KEYS[9], p, 'cancelled', ms)
end
if e.open == id then let_go(e, ms) end
redis.call('HSET', KEYS[1], job, entry_text(e))
redis.call('HDEL', KEYS[4], id)
redis.call('ZREM', KEYS[3], id)
return 'cancelled'
