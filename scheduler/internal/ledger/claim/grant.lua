-- Part of claim.lua: answers, and grants.
-- needs: codec/run codec/tick

local function answer(i, word, token, value, record)
  local at = place[i]
  out[at], out[at + 1], out[at + 2], out[at + 3] = word, token, value, record
end

-- Writes a lease. c is the item; p is what the run is made of: a pending run, or a tick. Returns
-- the run's record, and the time left.
local function grant(e, id, c, p)
  local mode = c.mode
  e.token, e.rid = next_token(e.token, e.rid, us, here, GUARD), here
  if p.of ~= '' then -- the open tick holds the job
    if mode ~= 'a' and e.open == '' then e.open, e.busy = p.of, '' end
  elseif mode == 'a' then
    if e.open == id then e.open = '' end
  elseif e.open ~= id then
    e.open, e.busy = id, ''
  end
  local till = lapses(tonumber(p.tick), c.ttl)
  p.until_, p.beat, p.token, p.node, p.name, p.ttl, p.granted, p.mode, p.most = till, '0', e.token, node, name, c.ttl, granted, mode, c.most
  local text, at = run_text(p), #runs
  runs[at + 1], runs[at + 2] = id, text
  leases[at + 1], leases[at + 2] = till, id
  return text, int(till - ms)
end

-- The payload of a shard is its tick's; it ends the answer's record.
local function carried(of)
  local t = of ~= '' and tick_of(redis.call('HGET', k.waiting, of))
  return t and t.payload or ''
end

-- The same grant again, when this very claim was granted before and its answer got lost.
local function repeated(i, e, id, kind, mode)
  if e.open ~= id and mode ~= 'a' and kind ~= 's' then return false end
  local text = redis.call('HGET', k.runs, id)
  local r = run_of(text)
  if not r or r.node ~= node or r.job ~= names[i] then return false end
  answer(i, 'granted', r.token, int(math.max(0, r.until_ - ms)), kind ~= 't' and text .. carried(r.of) or r.attempt == '1' and '' or r.attempt)
  return true
end

local function opened(i, e, id)
  answer(i, 'opened', '', e.cursor, id)
  return true
end

-- A tick that is open already: by this very claim, or for a tick by another node's.
local function is_open(i, e, id)
  local t = tick_of(redis.call('HGET', k.waiting, id))
  return t and t.job == names[i] and opened(i, e, id)
end
