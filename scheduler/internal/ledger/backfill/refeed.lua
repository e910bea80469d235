-- Restores backfills that Redis has lost, as nodes read them last. Of several nodes' reports the
-- one with the most progress counts.
-- keys: backfills backfilled gate incarnation
-- Arguments: refeedArgs in refeed.go.
-- Returns how many were stored, as text, or server (the caller is of another epoch).
-- needs: lib/args lib/base lib/epoch codec/backfill
if elsewhere(args.server, (epoch_at(server_id()))) then return 'server' end

-- The progress of a backfill: the first tick not put into pending, and the time of its last step.
local function place(b) return tonumber(b.next) or math.huge, tonumber(b.looked) end

local function further(b, other)
  local next, looked = place(b)
  local its, at = place(other)
  return next > its or next == its and looked > at
end

local stored = 0
for _, record in ipairs(args.seen) do
  local b = backfill_of(record)
  local there, over = redis.call('HGET', k.backfills, b.job), backfill_of(redis.call('HGET', k.backfilled, b.job))
  local had = backfill_of(there)
  if not there and not (over and over.id == b.id) or had and had.id == b.id and further(b, had) then
    if b.state == 'going' then b.state = 'restored' end
    redis.call('HSET', k.backfills, b.job, backfill_text(b))
    stored = stored + 1
  end
end
return int(stored)
