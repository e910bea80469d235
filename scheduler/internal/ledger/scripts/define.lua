-- Registers definitions: creates the entry of a new job, or replaces the stored definition by
-- compare-and-set on its digest and cursor, after recording the old schedule's ticks that
-- nobody will run any more.
-- KEYS[1] jobs  KEYS[2] defs  KEYS[3] due  KEYS[4] kept  KEYS[5] outbox  KEYS[6] followers
-- KEYS[6+i] history of item i's job, then anew, and last the partition's gate
-- ARGV[1] the caller's idea of Redis' time, ms  ARGV[2] tolerated difference, ms
-- ARGV[3] rows to keep  ARGV[4] age to keep, ms
-- ARGV[5] epoch of the promotion that this is part of, '' for a node's own definitions
-- then 13 for each item: job, digest, revision, cursor (first tick of the new schedule),
--   expected digest and cursor ('' to create only), last and count of the old ticks, the first old
--   tick after those ('' for none), the old schedule as text, generation, '1' when the schedule is the old one,
--   definition ('' where it may be stored already)
-- Returns {'clock', redis ms}, {'closed', 'state|move|words'}, or seven for each item: word, cursor, digest, revision,
-- definition, latest instant accounted for, and '1' when the definition that was asked for is stored
--   created    cursor of the new entry
--   same       the definition is the current one
--   replaced   cursor of the replaced entry
--   missing    the definition would be created or replace another one, and is to be sent: nothing has changed
--   differs    another definition is current, or it stands elsewhere, or meanwhile a tick came due
--              that the caller did not count: what is there, whole
--   standby    nothing is stored, and another generation is the one that makes new jobs; or a later promotion
--              has come here than the one that this is part of
--   foreign    a record that this version does not understand
-- needs: lib/base lib/newer lib/gate lib/windows lib/history lib/outbox codec/entry
local keep, keep_for = ARGV[3], ARGV[4]
local us, ms = clock()
if astray(ms, ARGV[1], ARGV[2]) then return {'clock', int(ms)} end
local shut = closed(KEYS[#KEYS])
-- guard:define-gate P7 a partition that a move has closed takes no definition
if shut then return {'closed', shut} end
local gate, epoch, anew = gate_of(redis.call('GET', KEYS[#KEYS])), ARGV[5], KEYS[#KEYS - 1]
local out = {}

local none = {cursor = '', digest = '', revision = '', last = ''}

local function answer(i, word, e, def, known)
  local at = (i - 1) * 7
  out[at + 1], out[at + 2], out[at + 3], out[at + 4], out[at + 5], out[at + 6], out[at + 7] =
    word, e.cursor, e.digest, e.revision, def, e.last, known or ''
end

local function store(job, e)
  redis.call('HSET', KEYS[1], job, entry_text(e))
  if e.cursor == '' then redis.call('ZREM', KEYS[3], job) else redis.call('ZADD', KEYS[3], e.cursor, job) end
end

-- Whether a definition is stored, or comes with the call.
local function at_hand(digest, def) return def ~= '' or redis.call('HEXISTS', KEYS[2], digest) == 1 end

local function keep_text(digest, def)
  if def ~= '' then redis.call('HSET', KEYS[2], digest, def) end
end

-- Where a new job begins: with its next tick, or where nodes say that it stood before Redis lost it.
local function begins(job, digest, cursor)
  local field = job .. '|' .. digest
  local told = string.match(redis.call('HGET', anew, field) or '', '^1?|(%d+)$')
  redis.call('HSET', anew, field, '1|' .. (told or ''))
  redis.call('EXPIRE', anew, ANEW_FOR)
  return told or cursor
end

local function stays(i, e, digest)
  answer(i, 'differs', e, redis.call('HGET', KEYS[2], e.digest) or '', redis.call('HEXISTS', KEYS[2], digest) == 1 and '1')
end

-- Whether another definition than the expected one is stored, or it stands elsewhere, or the new schedule would begin too early.
local function unfit(e, was, stood, upcoming, cursor, same)
  if e.digest ~= was then return true end
  if same ~= '' then return false end
  -- guard:define-cursor P2 old ticks that were claimed meanwhile are not accounted for twice
  if e.cursor ~= stood then return true end
  if upcoming ~= '' and tonumber(upcoming) <= ms then return true end
  -- guard:define-ahead P1 the cursor never goes back to what was accounted for
  if cursor ~= '' and (tonumber(cursor) <= ms or tonumber(cursor) <= (tonumber(e.last) or 0)) then return true end
  return false
end

-- Whether the job is another generation's: a later promotion has come here, or the job is new and not for this generation to make.
local function apart(epoch, exists, generation)
  -- guard:promotion-epoch P7 what an older promotion sends changes nothing
  if epoch ~= '' and epoch ~= gate.epoch then return true end
  -- guard:active-generation P7 only the active generation makes new jobs
  if epoch == '' and not exists and generation ~= gate.generation then return true end
  return false
end

for i = 1, (#ARGV - 5) / 13 do
  local a = 6 + (i - 1) * 13
  local job, digest, revision, cursor, was, stood, last, num, upcoming, old, generation, same, def = ARGV[a], ARGV[a + 1],
    ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8], ARGV[a + 9], ARGV[a + 10],
    ARGV[a + 11], ARGV[a + 12]
  local text = redis.call('HGET', KEYS[1], job)
  local e = entry_of(text)
  if apart(epoch, text, generation) then
    answer(i, 'standby', none, '')
  elseif not text and not at_hand(digest, def) then
    answer(i, 'missing', none, '')
  elseif not text then
    cursor = begins(job, digest, cursor)
    e = {cursor = cursor, digest = digest, revision = revision, token = '0', rid = '', open = '', base = cursor, last = '',
      pause = '', busy = '', again = '', counts = ''}
    keep_text(digest, def)
    store(job, e)
    answer(i, 'created', e, '')
  elseif not e then
    answer(i, 'foreign', none, '')
  elseif e.digest == digest then
    if newer(revision, e.revision) then e.revision = revision end
    store(job, e) -- also for 'due', which may have been postponed
    answer(i, 'same', e, '')
  elseif unfit(e, was, stood, upcoming, cursor, same) then
    stays(i, e, digest)
  elseif not at_hand(digest, def) then
    answer(i, 'missing', none, '')
  else
    if same == '1' then stood, cursor, last, num = e.cursor, e.cursor, '', '0' end
    -- A step of the chain even when no old tick was due (count 0), and when the old schedule had
    -- no more ticks ('' to cursor). It may lead back: to before the old cursor, not before e.last.
    if not append(KEYS[6 + i], KEYS[4], '1|S|' .. stood .. '|' .. cursor .. '|' .. int(ms) .. '|' .. stood .. '|' .. last .. '|' .. num
      .. '|superseded|definition replaced|' .. old, e, ms, keep, keep_for) then
      answer(i, 'foreign', none, '')
    else
      if num ~= '0' then
        e.last = last
        count(e, 'superseded', tonumber(num))
        if redis.call('HEXISTS', KEYS[6], job) == 1 then tell(KEYS[5], job, stood, cursor, stood, last, tonumber(num), 'superseded', ms) end
      end
      redis.call('HDEL', anew, job .. '|' .. was)
      e.cursor, e.digest, e.revision = cursor, digest, revision
      stretch(e, ms)
      keep_text(digest, def)
      store(job, e)
      answer(i, 'replaced', e, '')
    end
  end
end
return out
