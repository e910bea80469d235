-- After Redis was restarted, or another server has taken its place: a node says where jobs stood. One that Redis has lost begins
-- there, and not with its next tick, so that the ticks between are run or recorded as after any outage.
-- KEYS[1] jobs  KEYS[2] due  KEYS[3] anew  KEYS[4] kept  KEYS[5] outbox  KEYS[6] followers  KEYS[6+i] history of item i's job, where
-- some item has a gap
-- ARGV[1] the caller's idea of Redis' time, ms  ARGV[2] tolerated difference, ms
-- ARGV[3] rows to keep  ARGV[4] age to keep, ms  ARGV[5] id of the server that it is for
-- then 5 for each item: job, digest of the definition, cursor, '1' when the job stood there, so that all before it is accounted for;
--   gap: '', or 'from,last,count': ticks to be recorded as missed, because Redis has lost what became of them
-- Returns {'clock', redis ms} or {'server', id} and does nothing when the caller is mistaken about either, else three for
-- each item that is to be told again, with a gap: its number from 1, word, where the gap ends or begins
--   before  the job was made anew and has been claimed since: the gap ends where its chain begins
--   behind  the cursor stands before the caller's, in a Redis that has not lost the job: the gap begins there, if the runs that
--           nodes were granted do not account for it
-- needs: lib/base lib/windows lib/history lib/outbox codec/entry
local now, skew, keep, keep_for, server = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local us, ms = clock()
if astray(ms, now, skew) then return {'clock', int(ms)} end
local here = server_id()
if elsewhere(server, here) then return {'server', here} end
local STRIDE, HEAD, FIRST = 5, 5, 6
local n = (#ARGV - HEAD) / STRIDE
local names, fields = {}, {}
for i = 1, n do
  local a = HEAD + 1 + (i - 1) * STRIDE
  names[i], fields[i] = ARGV[a], ARGV[a] .. '|' .. ARGV[a + 1]
end
local entries, marks = redis.call('HMGET', KEYS[1], unpack(names)), redis.call('HMGET', KEYS[3], unpack(fields))
local noted, saved, due, out = {}, {}, {}, {}

local function note(i, made, cursor)
  noted[#noted + 1], noted[#noted + 2] = fields[i], made .. '|' .. cursor
end

local function save(i, e)
  saved[#saved + 1], saved[#saved + 2] = names[i], entry_text(e)
  due[#due + 1], due[#due + 2] = e.cursor, names[i]
end

-- Records the ticks of a gap, if it begins, and the one behind them is, where it should.
local function fill(i, e, gap, begin, nxt)
  local from, last, num = string.match(gap, '^(%d+),(%d+),(%d+)$')
  if from ~= begin or tonumber(last) >= tonumber(nxt) then return false end
  if not pass(KEYS[FIRST + i], KEYS[4], e, from, from, last, tonumber(num), nxt, 'missed', 'failover', '', ms, keep, keep_for) then return false end
  if redis.call('HEXISTS', KEYS[6], names[i]) == 1 then tell(KEYS[5], names[i], from, nxt, from, last, tonumber(num), 'missed', ms) end
  return last
end

local function again(i, word, at)
  out[#out + 1], out[#out + 2], out[#out + 3] = int(i), word, at
end

local function recall(i, digest, cursor, heard, gap)
  local c = tonumber(cursor)
  local made, told = string.match(marks[i] or '|', '^(1?)|(%d*)$')
  -- Of what nodes tell of a lost job the latest counts.
  if told and told ~= '' and c <= tonumber(told) then return end
  if not entries[i] then return note(i, '', cursor) end
  local e = entry_of(entries[i])
  if not e or e.digest ~= digest or e.cursor == '' then return end
  local stands = tonumber(e.cursor)
  if made == '1' and e.last == '' and e.cursor == e.base then -- nothing was asked of it yet
    e.cursor, e.base = cursor, cursor
    note(i, '1', cursor)
    save(i, e)
  elseif made == '1' and told == '' and e.base ~= '' and c < tonumber(e.base) then
    if gap == '' then return again(i, 'before', e.base) end
    if fill(i, e, gap, cursor, e.base) then
      e.base = cursor
      note(i, '1', cursor)
      save(i, e)
    end
  elseif heard == '1' and stands < c and e.again == '' then
    local last = gap ~= '' and fill(i, e, gap, e.cursor, cursor)
    if not last then return again(i, 'behind', e.cursor) end
    e.cursor, e.last = cursor, last
    shed(e, ms)
    save(i, e)
  end
end

for i = 1, n do
  local a = HEAD + 1 + (i - 1) * STRIDE
  recall(i, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
end
if #noted > 0 then
  redis.call('HSET', KEYS[3], unpack(noted))
  redis.call('EXPIRE', KEYS[3], ANEW_FOR)
end
if #saved > 0 then
  redis.call('HSET', KEYS[1], unpack(saved))
  redis.call('ZADD', KEYS[2], unpack(due))
end
return out
