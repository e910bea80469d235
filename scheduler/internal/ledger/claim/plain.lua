-- Part of claim.lua: the fast path.
-- needs: lib/windows

-- The fast path: plain ticks of jobs that are idle, not paused and not rewound. Entries are read by
-- patterns, and texts that the batch's jobs share are read once. The slow path handles all other
-- items; its code is not loaded while there are none.
local find, sub, match, concat = string.find, string.sub, string.match, table.concat
local tokens, left, seen, twice, size = {}, {}, {}, false, 0
local idle = '|' .. here .. '||' -- in an entry: this server gave the last token, and nothing holds the job
local heads, mids = {}, {} -- by text: revision and token; base and last
local terms, tick, nxt, can, mode, due_at, was, becomes, before, behind, ends

-- The texts that grants of one tick and the same terms share.
local function share()
  local ttl, most, trigger
  can = false
  ttl, mode, most, trigger = match(terms, '^(%d+)|([sqra])|(%d+)|(.*)$')
  if not ttl then return end
  due_at = tonumber(tick)
  if tonumber(nxt) <= due_at or early(due_at, 0) then return end
  can, ends = true, lapses(due_at, ttl)
  was, becomes, before = '1|' .. tick .. '|', '1|' .. nxt .. '|', '1|' .. ends .. '|0|'
  behind = '|' .. node .. '|' .. name .. '|' .. ttl .. '|' .. tick .. '|' .. nxt .. '|' .. trigger .. '||' .. granted .. '|' .. mode .. '|' .. most .. '|||'
  heads, mids = {}, {}
end

-- From a revision and a last token: the new token, the entry's text from the revision to the
-- server, and the run's text from the tick on.
local function head_of(revision, token, rid)
  token = next_token(token, rid, us, here, GUARD)
  return {token, '|' .. revision .. '|' .. token .. '|' .. here .. '|', '|' .. tick .. '|0|1|1|' .. token .. behind}
end

-- From base and last: the entry's text from the base to the counts.
local function mid_of(base) return '|' .. base .. '|' .. tick .. '||||' end

-- Reads an entry from the digest's end on: head, mid and counts, or nil.
local function plain(s, at)
  local from, to = find(s, idle, at, true)
  local a, b = find(s, '||||', to or at, true) -- neither paused, nor busy lately, nor set back
  if from and a and a > to and not find(s, '|', b + 1, true) then
    local head, mid = sub(s, at, from - 1), sub(s, to + 1, a - 1)
    if heads[head] == nil then
      local revision, token = match(head, '^|([^|]*)|(%d+)$')
      heads[head] = revision and head_of(revision, token, here) or false
    end
    if mids[mid] == nil then
      local base = match(mid, '^(%d*)|%d*$')
      mids[mid] = base and mid_of(base) or false
    end
    if heads[head] and mids[mid] then return heads[head], mids[mid], sub(s, b + 1) end
  end
  local revision, token, rid, base, window, counts =
    match(s, '^|([^|]*)|(%d+)|([^|]*)||(%d*)|%d*||([%d,]*)||([^|]*)$', at)
  if not revision then return nil end
  if window ~= '' then
    local since, till = pair(window) -- the slow path decides on a tick in it
    if mode == 'a' or not since or mode ~= 's' and due_at >= since and due_at < till then return nil end
  end
  return head_of(revision, token, rid), mid_of(base), counts
end

local full -- whether the outbox is full; read when first needed
local function no_room()
  if full == nil then full = redis.call('ZCARD', k.outbox) >= OUTBOX_MAX end
  return full
end

for i = 1, n do
  local job, a, s, head, mid, counts = names[i], at[i], raw[i], nil, nil, nil
  if seen[job] then
    twice = true
  elseif s and not shut and #ARGV[a] > 1 then
    if ARGV[a] ~= terms or ARGV[a + TICK] ~= tick or ARGV[a + NEXT] ~= nxt then
      terms, tick, nxt = ARGV[a], ARGV[a + TICK], ARGV[a + NEXT]
      share()
    end
    local digest = ARGV[a + DIGEST]
    if can and (cursor_differs(sub(s, 1, #was), was) or digest_differs(sub(s, #was + 1, #was + #digest), digest)) then s = nil end
    if s and can and not (followed[i] and no_room()) then head, mid, counts = plain(s, #was + #digest + 1) end
    if head then
      local id = ARGV[a + RUN]
      runs[size + 1], runs[size + 2] = id, before .. job .. head[3]
      leases[size + 1], leases[size + 2] = ends, id
      saved[size + 1], saved[size + 2] = job, becomes .. digest .. head[2] .. (mode == 'a' and '' or id) .. mid .. counts
      due[size + 1], due[size + 2] = nxt, job
      size = size + 2
    end
  end
  if head then tokens[i] = head[1]
  else
    left[#left + 1], tokens[i] = i, ''
  end
  seen[job] = true
end
if size > 0 then
  redis.call('HSET', k.runs, unpack(runs))
  redis.call('ZADD', k.leases, unpack(leases))
  redis.call('HSET', k.jobs, unpack(saved))
  redis.call('ZADD', k.due, unpack(due))
end
if #left == 0 then return {concat(tokens, ','), granted} end
