-- Stands before every ledger script: the records' codecs, Redis' clock. Before
-- it stands the token rule, which locks and runs share.
-- All records begin with their format version, '1'. A record that does not decode is foreign
-- (written by a newer node, or by nobody we know): scripts answer 'foreign' and leave it alone.
--
-- entry    1|cursor|digest|revision|token|rid|open|base|last
--          cursor  earliest tick not accounted for, ms; '' when the schedule has no more
--          token, rid  state of the token rule;  open  run id that holds the job, leased or pending
--          base  where the recorded chain begins (moves on when history is trimmed)
--          last  latest instant ever accounted for, ms
-- run      1|until|beat|job|tick|shard|shards|attempt|token|node|name|ttl|prev|next|trigger|request|granted|payload
-- pending  1|job|tick|shard|shards|attempt|prev|next|trigger|request|at|payload
-- row      1|R|prev|next|at|tick|shard|shards|attempt|tries|run|token|node|name|trigger|request|outcome|reason|started|late|error
--          1|S|prev|next|at|tick|until|count|outcome|reason

local GUARD = 60000000 -- redisconn.TokenGuardMicros

-- Lua prints numbers with 14 digits in Redis and 17 in miniredis: every number is spelt by this.
local function int(n) return string.format('%.0f', n) end

local function clock()
  local us = server_micros()
  return us, math.floor(us / 1000)
end

-- The rule against every clock trouble: true when the caller's idea of our time is wrong.
local function astray(ms, now, skew)
  return math.abs(ms - tonumber(now)) > tonumber(skew)
end

-- Whether revision a comes after b: byte by byte, for Lua's own < asks the server's locale.
local function newer(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

local function entry_of(s)
  if not s then return nil end
  local c, d, v, t, r, o, b, l = string.match(s,
    '^1|(%d*)|([^|]*)|([^|]*)|(%d+)|([^|]*)|([^|]*)|(%d*)|(%d*)$')
  if not c then return nil end
  return {cursor = c, digest = d, revision = v, token = t, rid = r, open = o, base = b, last = l}
end

local function entry_text(e)
  return '1|' .. e.cursor .. '|' .. e.digest .. '|' .. e.revision .. '|' .. e.token .. '|' .. e.rid
    .. '|' .. e.open .. '|' .. e.base .. '|' .. e.last
end

local RUN = '^1|(%d+)|(%d+)|([^|]*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|([^|]*)|([^|]*)|(%d+)|(%d*)|(%d*)|([^|]*)|([^|]*)|(%d+)|(.*)$'

local function run_of(s)
  if not s then return nil end
  local u, b, j, ti, sh, ss, a, tk, n, nm, ttl, p, nx, tr, rq, g, pay = string.match(s, RUN)
  if not u then return nil end
  return {until_ = u, beat = b, job = j, tick = ti, shard = sh, shards = ss, attempt = a, token = tk,
    node = n, name = nm, ttl = ttl, prev = p, next = nx, trigger = tr, request = rq, granted = g, payload = pay}
end

local function pending_of(s)
  if not s then return nil end
  local j, ti, sh, ss, a, p, nx, tr, rq, at, pay = string.match(s,
    '^1|([^|]*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d*)|(%d*)|([^|]*)|([^|]*)|(%d+)|(.*)$')
  if not j then return nil end
  return {job = j, tick = ti, shard = sh, shards = ss, attempt = a, prev = p, next = nx,
    trigger = tr, request = rq, at = at, payload = pay}
end

local function pending_text(p)
  return '1|' .. p.job .. '|' .. p.tick .. '|' .. p.shard .. '|' .. p.shards .. '|' .. p.attempt .. '|' .. p.prev
    .. '|' .. p.next .. '|' .. p.trigger .. '|' .. p.request .. '|' .. p.at .. '|' .. p.payload
end

-- Appends a row and keeps the list short: rows beyond keep, or older than keep_for, leave at the
-- head, and e.base moves to where the remaining chain begins. Looked at every 16th row, at most
-- 64 rows a time. Rows S stand in the order of their steps, each moves the base to its end, also
-- back (a replaced definition may begin before the old cursor). A row R may stand after later
-- steps, because its run took long: it moves the base only if its step does not lie before it.
-- Returns false, with nothing done, when the key holds something else than a history.
local function append(key, row, e, ms, keep, keep_for)
  local n = redis.pcall('RPUSH', key, row)
  if type(n) ~= 'number' then return false end
  if n % 16 ~= 0 then return true end
  local drop = 0
  local over, horizon = n - tonumber(keep), ms - tonumber(keep_for)
  for i, old in ipairs(redis.call('LRANGE', key, 0, 63)) do
    local kind, prev, nxt, at = string.match(old, '^1|([RS])|(%d*)|(%d*)|(%d+)|')
    if i == n or (i > over and tonumber(at or ms) >= horizon) then break end
    if kind == 'S' or (kind and prev ~= '' and e.base ~= '' and tonumber(prev) >= tonumber(e.base)) then e.base = nxt end
    drop = i
  end
  if drop > 0 then redis.call('LTRIM', key, drop, -1) end
  return true
end

-- Records ticks that did not run, [first, last], as one row; a row that carries on the one
-- before it, for the same reason, is merged into it. Returns what append does.
local function pass(key, e, first, last, count, nxt, outcome, reason, ms, keep, keep_for)
  local tail = redis.pcall('LINDEX', key, -1)
  if type(tail) == 'string' then
    local p, n, t, c = string.match(tail, '^1|S|(%d*)|(%d*)|%d+|(%d*)|%d*|(%d+)|' .. outcome .. '|' .. reason .. '$')
    if p and n == first then
      redis.call('LSET', key, -1, '1|S|' .. p .. '|' .. nxt .. '|' .. int(ms) .. '|' .. t .. '|' .. last
        .. '|' .. int(c + count) .. '|' .. outcome .. '|' .. reason)
      return true
    end
  end
  return append(key, '1|S|' .. first .. '|' .. nxt .. '|' .. int(ms) .. '|' .. first .. '|' .. last .. '|' .. int(count)
    .. '|' .. outcome .. '|' .. reason, e, ms, keep, keep_for)
end

local function row_text(id, r, outcome, reason, started, ended, tries, err)
  return '1|R|' .. r.prev .. '|' .. r.next .. '|' .. ended .. '|' .. r.tick .. '|' .. r.shard .. '|' .. r.shards
    .. '|' .. r.attempt .. '|' .. tries .. '|' .. id .. '|' .. r.token .. '|' .. r.node .. '|' .. r.name
    .. '|' .. r.trigger .. '|' .. r.request .. '|' .. outcome .. '|' .. reason .. '|' .. started .. '||' .. err
end

-- Finds the row of a run by its id, or by the id that a person asked for; newest first. Returns
-- its index from the tail, head (all before the field 'late'), outcome, late, error, run id.
local ROW = '^(1|R|%d*|%d*|%d+|%d+|%d+|%d+|%d+|%d+|([^|]*)|%d+|[^|]*|[^|]*|[^|]*|([^|]*)|([^|]*)|[^|]*|%d*)|([^|]*)|(.*)$'
local function find_row(key, id)
  local from = -1
  while true do
    local rows = redis.pcall('LRANGE', key, from - 31, from)
    if rows.err then return nil end
    for i = #rows, 1, -1 do
      if string.find(rows[i], id, 1, true) then
        local head, run, req, outcome, late, err = string.match(rows[i], ROW)
        if run == id or req == id then return from - (#rows - i), head, outcome, late, err, run end
      end
    end
    if #rows < 32 then return nil end
    from = from - 32
  end
end
