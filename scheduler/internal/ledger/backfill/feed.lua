-- Advances a backfill in one atomic step: counts its ended runs, and puts runs of its next ticks
-- into pending, up to the backfill's parallel, the history's room and the partition's. Nothing is
-- done unless the stored backfill is the one that the caller has read, so a tick gets one run, for
-- any number of callers and whenever a caller dies.
-- keys: jobs runs leases pending waiting recent history backfills backfilled gate incarnation
-- Arguments: feedArgs in backfill.go.
-- Returns {'closed|state|move|words'}, {'server'} (the caller is of another epoch, or this call has
-- begun one), {word, the backfill now}, or {word}: fed, put (runs were put into pending), ended
-- (the backfill is over); stale (the stored backfill is another one), superseded (the stored
-- definition is another one than the caller's), unknown, foreign.
-- needs: lib/args lib/gate lib/base lib/epoch lib/lost lib/windows lib/history codec/row codec/entry codec/pending codec/backfill
local job = args.job
local shut = closed(k.gate)
-- guard:feed-gate P7 a partition that a move has closed takes no runs of a backfill
if shut then return {'closed|' .. shut} end
if elsewhere(args.server, (epoch_at(server_id()))) then return {'server'} end
local us, ms = clock(args.now, args.skew)
local text = redis.call('HGET', k.jobs, job)
if not text then return {'unknown'} end
local e, b = entry_of(text), backfill_of(args.seen)
if not e or not b then return {'foreign'} end
-- guard:backfill-seen P1 a tick of a backfill is put in only by a caller that has read that the
-- tick was not
if redis.call('HGET', k.backfills, job) ~= args.seen then return {'stale'} end
if e.digest ~= args.digest then return {'superseded'} end
if type(redis.pcall('LLEN', k.history)) ~= 'number' then return {'foreign'} end -- the key holds no list

-- Looks for the runs of some ticks. An entry of list is a tick, then the ids that its run may have.
-- Returns two tables by the entry's number: the id of a run that has not ended, and the outcome of
-- a run that has ended. An entry without a run is in neither.
local function look(list)
  local ids, outcomes, wanted, left = {}, {}, {}, 0
  for i, one in ipairs(list) do
    local names = {unpack(one, 2)}
    for _, key in ipairs({k.runs, k.waiting}) do
      for n, record in ipairs(redis.call('HMGET', key, unpack(names))) do
        if record then ids[i] = names[n] end
      end
    end
    if not ids[i] then wanted[b.id .. '-' .. one[1]], left = i, left + 1 end
  end
  local from = -1
  while left > 0 do
    local rows = redis.call('LRANGE', k.history, from - 99, from)
    for n = #rows, 1, -1 do -- the last attempt counts
      local kind, _, shards, request, outcome = string.match(rows[n], ROW_OUTCOME)
      if kind and wanted[request] and (kind == 'T' or shards == '1') then
        outcomes[wanted[request]], wanted[request], left = outcome, nil, left - 1
      end
    end
    if #rows < 100 or tonumber(string.match(rows[1], ROW_AT) or 0) < tonumber(b.began) then break end
    from = from - 100
  end
  return ids, outcomes
end

-- Puts the first run of a tick into pending.
local function put_in(tick, id, start)
  redis.call('HSET', k.waiting, id, pending_text({job = job, tick = tick, shard = '0', shards = '1', attempt = '1', prev = '', next = '',
    trigger = 'backfill', request = id, at = int(start), holds = '', of = '', param = '', payload = ''}))
  redis.call('ZADD', k.pending, int(start), id)
end

-- guard:backfill-run-lost P2 a backfill's run without a record is not lost before nodes report
for _, list in ipairs({args.going, args.ticks}) do
  for _, one in ipairs(list) do
    for n, record in ipairs(redis.call('HMGET', k.runs, unpack(one, 2))) do
      if not record and run_lost(one[n + 1]) then return {'server'} end
    end
  end
end

local restored, going = b.state == 'restored', {}
if restored then b.state = 'going' end
local ids, outcomes = look(args.going)
for i, one in ipairs(args.going) do
  local lost = restored and not ids[i] and not outcomes[i] and one[2] == b.id .. '-' .. one[1]
  -- guard:backfill-restored P2 a waiting run of a backfill that Redis has lost is pending again
  if lost then
    put_in(one[1], one[2], ms - #args.going - #args.ticks + i)
    ids[i] = one[2]
  end
  if ids[i] then going[#going + 1] = one[1] .. '=' .. ids[i]
  else count(b, outcomes[i] or 'lost', 1) end
end
local put = 0
if b.next ~= '' and not paused(e, ms) then
  ids, outcomes = look(args.ticks)
  local room = args.most - redis.call('ZCARD', k.pending)
  local at = 1
  while at <= #args.ticks and #going < args.at_once and put < room do
    local tick, id = args.ticks[at][1], args.ticks[at][2]
    local had = nil
    -- guard:backfill-once P1 a tick whose run a failover did not lose gets no second run
    had = ids[at] or outcomes[at]
    if had and ids[at] then going[#going + 1] = tick .. '=' .. had
    elseif had then count(b, had, 1)
    else
      put = put + 1
      put_in(tick, id, ms - #args.ticks + at) -- runs start in the order of their ticks
      going[#going + 1] = tick .. '=' .. id
    end
    at = at + 1
  end
  -- guard:backfill-next P2 no tick of a backfill is passed over
  b.next = args.ticks[at] and args.ticks[at][1] or args.rest
end
b.going, b.looked = table.concat(going, ','), int(ms)
if b.next == '' and #going == 0 then
  if b.state == 'going' then b.state = 'done' end
  b.ended = int(ms)
  text = backfill_text(b)
  redis.call('HSET', k.backfilled, job, text)
  redis.call('HDEL', k.backfills, job)
  return {'ended', text}
end
text = backfill_text(b)
redis.call('HSET', k.backfills, job, text)
return {put > 0 and 'put' or 'fed', text}
