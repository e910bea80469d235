-- After a failover or a restart of Redis, a node reports the cursors of jobs. A job that Redis has
-- lost begins at the reported cursor: the ticks since then are run or recorded as after any outage.
-- keys: jobs due anew kept recent outbox followers gate incarnation histories
-- Returns {'clock', redis ms} or {'server', id} and does nothing when the caller is wrong about
-- either, else three for each item to be reported again with a gap: its number from 1, word, the
-- gap's end or beginning
--   after   a restored run accounts for the tick: report the first tick behind it
--   before  the job was created and has been claimed since: the gap ends where its chain begins
--   behind  the cursor lies before the caller's, in a Redis that has not lost the job: the gap
--           begins there, unless granted runs account for it
-- needs: lib/base lib/epoch lib/windows lib/history lib/outbox codec/entry
-- ARGV, written by gen from verbs.go:
--   now        the caller's idea of Redis' time, ms, 0 for none
--   skew       tolerated difference, ms
--   keep       rows to keep
--   keep_for   age to keep, ms
--   server     id of the caller's epoch, '' for any
-- then for each item:
--   job        the job's name
--   digest     of the caller's definition
--   cursor     the job's cursor before the failover, ms
--   opened     the cursor behind a sharded tick that nodes have opened, ms, where 'cursor' lies before that
--              tick; else ''
--   heard      '1' when Redis had this cursor: all ticks before the cursor are accounted for
--   sharded    '1' when ticks of the job are opened in shards: each node has reported some shards only
--   gap        'from,last,count': ticks that Redis has lost, to be recorded as missed; '' for none
local now, skew, keep, keep_for, server = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local n = (#ARGV - 5) / 7
local function item(i)
  local a = 6 + (i - 1) * 7
  return {job = ARGV[a], digest = ARGV[a + 1], cursor = ARGV[a + 2], opened = ARGV[a + 3], heard = ARGV[a + 4],
    sharded = ARGV[a + 5], gap = ARGV[a + 6]}
end
-- end of ARGV
local us, ms = clock()
if clock_off(ms, now, skew) then return {'clock', int(ms)} end
local here = epoch_at(server_id())
if elsewhere(server, here) then return {'server', here} end
local items, names, fields, heards = {}, {}, {}, {}
for i = 1, n do
  local c = item(i)
  items[i], names[i], fields[i], heards[i] = c, c.job, c.job .. '|' .. c.digest, c.job .. '|' .. c.digest .. '|heard'
end
local entries = redis.call('HMGET', k.jobs, unpack(names))
local marks, heard_at = redis.call('HMGET', k.anew, unpack(fields)), redis.call('HMGET', k.anew, unpack(heards))
local noted, saved, due, out = {}, {}, {}, {}

-- Notes a reported cursor. Whether Redis had that cursor is noted in a field of its own, which
-- older versions do not read.
local function note(i, made, cursor)
  local at = #noted
  noted[at + 1], noted[at + 2] = fields[i], made .. '|' .. cursor
  if items[i].heard == '1' then noted[at + 3], noted[at + 4] = heards[i], cursor end
end

-- Whether the reported cursor yields to one that was reported before. A cursor that Redis had
-- outweighs any cursor that a node worked out; among equals the latest counts.
local function outweighed(c, at, reported, heard)
  if reported == '' then return false end
  -- guard:worked-out-yields P2 a worked-out cursor passes no tick that another node saw ungranted
  if heard ~= (c.heard == '1') and c.sharded ~= '1' then return heard end
  return at <= tonumber(reported)
end

local function save(i, e)
  saved[#saved + 1], saved[#saved + 2] = names[i], entry_text(e)
  due[#due + 1], due[#due + 2] = e.cursor, names[i]
end

-- Records the ticks of a gap that begins at a cursor and ends before another cursor. Returns the
-- last tick, or false.
local function fill(i, e, gap, begin, nxt)
  local from, last, num = string.match(gap, '^(%d+),(%d+),(%d+)$')
  if from ~= begin or tonumber(last) >= tonumber(nxt) then return false end
  if not pass(k.histories[i], k.kept, e, from, from, last, tonumber(num), nxt, 'missed', 'failover', '', ms, keep, keep_for) then return false end
  if redis.call('HEXISTS', k.followers, names[i]) == 1 then notify(k.outbox, names[i], from, nxt, from, last, tonumber(num), 'missed', ms) end
  return last
end

local function ask(i, word, at)
  out[#out + 1], out[#out + 2], out[#out + 3] = int(i), word, at
end

local function recall(i, c)
  local made, reported = string.match(marks[i] or '|', '^(1?)|(%d*)$')
  local e = entry_of(entries[i])
  local untouched = e and made == '1' and e.cursor == e.base -- no tick of the job was claimed yet
  local cursor = c.cursor
  -- guard:opened-is-over P1 a sharded tick that an emptied Redis has no record of is not opened
  -- again
  if c.opened ~= '' and (not entries[i] or untouched) then cursor = c.opened end
  local at = tonumber(cursor)
  if reported and outweighed(c, at, reported, heard_at[i] == reported) then return end
  if not entries[i] then return note(i, '', cursor) end
  if not e or e.digest ~= c.digest or e.cursor == '' then return end
  if untouched and at <= (tonumber(e.last) or 0) then return ask(i, 'after', e.last) end
  if untouched then
    e.cursor, e.base = cursor, cursor
    note(i, '1', cursor)
    save(i, e)
  elseif made == '1' and reported == '' and e.base ~= '' and at < tonumber(e.base) then
    if c.gap == '' then return ask(i, 'before', e.base) end
    if fill(i, e, c.gap, cursor, e.base) then
      e.base = cursor
      note(i, '1', cursor)
      save(i, e)
    end
  elseif c.heard == '1' and tonumber(e.cursor) < at and e.reattempt == '' then
    local last = c.gap ~= '' and fill(i, e, c.gap, e.cursor, cursor)
    if not last then return ask(i, 'behind', e.cursor) end
    e.cursor, e.last = cursor, last
    shed(e, ms)
    save(i, e)
  end
end

for i = 1, n do recall(i, items[i]) end
if #noted > 0 then
  redis.call('HSET', k.anew, unpack(noted))
  redis.call('EXPIRE', k.anew, ANEW_FOR)
end
if #saved > 0 then
  redis.call('HSET', k.jobs, unpack(saved))
  redis.call('ZADD', k.due, unpack(due))
end
return out
