-- Registers definitions: creates the entry of a new job, or replaces the stored definition by
-- compare-and-set on its digest and cursor, after recording the old schedule's ticks that will not
-- run any more.
-- keys: jobs defs due kept recent outbox followers joins anew gate incarnation histories
-- Returns {'clock', redis ms}, {'closed', 'state|move|words'}, or seven for each item: word,
-- cursor, digest, revision, definition, latest instant accounted for, and '1' when the item's
-- definition is stored
--   created    cursor of the new entry
--   same       the definition is the current one
--   replaced   cursor of the replaced entry
--   missing    the definition is not stored, and is to be sent: nothing has changed
--   differs    another definition or cursor is current, or a tick came due since that the caller
--              did not count: the current entry and definition
--   standby    nothing is stored: another generation makes the new jobs, or the partition has had a
--              later promotion than the caller's
--   foreign    a record that this version cannot read
-- needs: lib/base lib/epoch lib/newer lib/gate lib/windows lib/history lib/outbox lib/joined codec/entry
-- ARGV, written by gen from verbs.go:
--   now        the caller's idea of Redis' time, ms, 0 for none
--   skew       tolerated difference, ms
--   keep       rows to keep
--   keep_for   age to keep, ms
--   epoch      of the promotion that sends the definitions, '' for a node's own definitions
-- then for each item:
--   job        the job's name
--   digest     of the caller's definition
--   revision   of the caller
--   cursor     first tick of the new schedule, ms, '' for none
--   was_digest expected digest, '' to create only
--   was_cursor expected cursor, ms, '' for none
--   last       last tick of the old schedule that is due and will not run, ms
--   count      how many ticks of the old schedule are due and will not run
--   upcoming   first tick of the old schedule that the caller does not count as due, ms, '' for none
--   old        the old schedule
--   generation of the caller, or the promoted one
--   same       '1' when the schedule is the old one
--   text       the definition, '' where it may be stored already
local now, skew, keep, keep_for, epoch = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local n = (#ARGV - 5) / 13
local function item(i)
  local a = 6 + (i - 1) * 13
  return {job = ARGV[a], digest = ARGV[a + 1], revision = ARGV[a + 2], cursor = ARGV[a + 3],
    was_digest = ARGV[a + 4], was_cursor = ARGV[a + 5], last = ARGV[a + 6], count = ARGV[a + 7],
    upcoming = ARGV[a + 8], old = ARGV[a + 9], generation = ARGV[a + 10], same = ARGV[a + 11],
    text = ARGV[a + 12]}
end
-- end of ARGV
local us, ms = clock()
if clock_off(ms, now, skew) then return {'clock', int(ms)} end
local shut = closed(k.gate)
-- guard:define-gate P7 a partition that a move has closed takes no definition
if shut then return {'closed', shut} end
local gate = gate_of(redis.call('GET', k.gate))
local out = {}

local none = {cursor = '', digest = '', revision = '', last = ''}

local function answer(i, word, e, def, known)
  local at = (i - 1) * 7
  out[at + 1], out[at + 2], out[at + 3], out[at + 4], out[at + 5], out[at + 6], out[at + 7] =
    word, e.cursor, e.digest, e.revision, def, e.last, known or ''
end

local function save(job, e)
  redis.call('HSET', k.jobs, job, entry_text(e))
  if e.cursor == '' then redis.call('ZREM', k.due, job) else redis.call('ZADD', k.due, e.cursor, job) end
end

-- Stores an entry that names the item's definition, and the definition if it comes with the call.
local function store(c, e)
  if c.text ~= '' then redis.call('HSET', k.defs, c.digest, c.text) end
  save(c.job, e)
end

-- Whether a definition is stored, or comes with the call.
local function at_hand(c) return c.text ~= '' or redis.call('HEXISTS', k.defs, c.digest) == 1 end

-- Another epoch begins when a job's entry was lost: nodes then report its runs. The counts are made
-- anew from the job's rows.
local function entry_lost(e, history)
  end_epoch()
  for _, text in ipairs(redis.pcall('LRANGE', history, 0, -1)) do
    local row = row_of(text)
    local range = not row and range_of(text)
    if row and row.kind == 'R' then
      count(e, row.outcome, 1)
    elseif range then
      count(e, range.outcome, tonumber(range.count))
      set_noted(e, 'apart', noted(e, 'apart') + 1)
    end
  end
end

-- The cursor of a new job: its next tick, or the cursor that nodes reported after Redis lost the
-- job.
local function begins(c)
  local field = c.job .. '|' .. c.digest
  local reported = string.match(redis.call('HGET', k.anew, field) or '', '^1?|(%d+)$')
  redis.call('HSET', k.anew, field, '1|' .. (reported or ''))
  redis.call('EXPIRE', k.anew, ANEW_FOR)
  return reported or c.cursor
end

local function stays(i, e, digest)
  answer(i, 'differs', e, redis.call('HGET', k.defs, e.digest) or '', redis.call('HEXISTS', k.defs, digest) == 1 and '1')
end

-- Whether another definition or cursor than the expected one is stored, or the new schedule would
-- begin too early.
local function unfit(c, e)
  if e.digest ~= c.was_digest then return true end
  if c.same ~= '' then return false end
  -- guard:define-cursor P2 old ticks that were claimed meanwhile are not accounted for twice
  if e.cursor ~= c.was_cursor then return true end
  if c.upcoming ~= '' and tonumber(c.upcoming) <= ms then return true end
  -- guard:define-ahead P1 the cursor never goes back to ticks that were accounted for
  if c.cursor ~= '' and (tonumber(c.cursor) <= ms or tonumber(c.cursor) <= (tonumber(e.last) or 0)) then return true end
  return false
end

-- Extends the row of the previous change, when no tick came due since: the row then leads from the
-- definition before both changes to the new one. Returns false when there is no such row.
local function changed_again(key, c)
  local tail = redis.pcall('LINDEX', key, -1)
  local r = type(tail) == 'string' and range_of(tail)
  if not r or r.reason ~= 'definition replaced' or r.count ~= '0' or c.count ~= '0' or r.next ~= c.was_cursor then return false end
  if r.prev == '' or r.next == '' or c.cursor == '' then return false end
  local stays = c.same == '1' and r.prev == r.next and r.note == c.old -- the due tick stays
  if not stays and tonumber(r.prev) <= ms then return false end
  r.next, r.at = c.cursor, int(ms)
  redis.call('LSET', key, -1, range_text(r))
  note_recent(ms, c.job)
  return true
end

-- Whether the job belongs to another generation: the partition has had a later promotion, or the
-- job is new and this generation is not the active one.
local function standby(c, exists)
  -- guard:promotion-epoch P7 an older promotion changes nothing
  if epoch ~= '' and epoch ~= gate.epoch then return true end
  -- guard:active-generation P7 only the active generation makes new jobs
  if epoch == '' and not exists and c.generation ~= gate.generation then return true end
  return false
end

for i = 1, n do
  local c = item(i)
  local job = c.job
  local text = redis.call('HGET', k.jobs, job)
  local e = entry_of(text)
  if standby(c, text) then
    answer(i, 'standby', none, '')
  elseif not text and not at_hand(c) then
    answer(i, 'missing', none, '')
  elseif not text then
    local lost = false
    -- guard:entry-lost P1 a job whose entry is gone is granted nothing before nodes have reported its runs
    if redis.call('ZSCORE', k.due, job) then lost = true end
    c.cursor = begins(c)
    e = {cursor = c.cursor, digest = c.digest, revision = c.revision, token = '0', rid = '', open = '', base = c.cursor, last = '',
      pause = '', busy = '', reattempt = '', counts = ''}
    if lost then entry_lost(e, k.histories[i]) end
    store(c, e)
    answer(i, 'created', e, '')
  elseif not e then
    answer(i, 'foreign', none, '')
  elseif e.digest == c.digest and not at_hand(c) then
    answer(i, 'missing', none, '')
  elseif e.digest == c.digest then
    if newer(c.revision, e.revision) then e.revision = c.revision end
    store(c, e) -- also writes 'due': the job may have been postponed
    answer(i, 'same', e, '')
  elseif unfit(c, e) then
    stays(i, e, c.digest)
  elseif not at_hand(c) then
    answer(i, 'missing', none, '')
  else
    if c.same == '1' then c.was_cursor, c.cursor, c.last, c.count = e.cursor, e.cursor, '', '0' end
    -- A step of the chain even when no old tick was due (count 0), and when the old schedule had no
    -- more ticks ('' to cursor). The step may lead back: to before the old cursor, not before
    -- e.last.
    if not changed_again(k.histories[i], c) and not append_range(k.histories[i], k.kept, {prev = c.was_cursor, next = c.cursor, at = int(ms),
      tick = c.was_cursor, last = c.last, count = c.count, outcome = 'superseded', reason = 'definition replaced', note = c.old}, e, ms, keep, keep_for) then
      answer(i, 'foreign', none, '')
    else
      if c.count ~= '0' then
        e.last = c.last
        count(e, 'superseded', tonumber(c.count))
        if redis.call('HEXISTS', k.followers, job) == 1 then
          notify(k.outbox, job, c.was_cursor, c.cursor, c.was_cursor, c.last, tonumber(c.count), 'superseded', ms)
        end
      end
      if c.same == '' then give_up_joins(k, job, e, k.histories[i], ms, keep, keep_for) end
      redis.call('HDEL', k.anew, job .. '|' .. c.was_digest, job .. '|' .. c.was_digest .. '|heard')
      e.cursor, e.digest, e.revision = c.cursor, c.digest, c.revision
      stretch(e, ms)
      store(c, e)
      answer(i, 'replaced', e, '')
    end
  end
end
return out
