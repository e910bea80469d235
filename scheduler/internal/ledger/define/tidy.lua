-- Deletes records that the caller found useless: announcements that no node renewed, chunks that no
-- announcement names, and definitions that neither a chunk nor an entry names. Does nothing when a
-- chunk was announced since.
-- keys: chunks announced defs jobs gate
-- Arguments: tidyArgs in tidy.go.
-- Returns 'closed|state|move|words', or one word: done, changed.
-- needs: lib/args lib/gate codec/entry
local shut = closed(k.gate)
-- guard:tidy-gate P7 a partition that a move has closed keeps records that the move may still read
if shut then return 'closed|' .. shut end
if (redis.call('HGET', k.chunks, 'changes') or '') ~= args.changes then return 'changed' end
for _, announcement in ipairs(args.announcements or {}) do
  local seen = redis.call('ZSCORE', k.announced, announcement)
  if seen and tonumber(seen) > args.old then return 'changed' end
end

-- Whether a job's entry names the definition, or may: it cannot be read.
local function named(digest)
  local ok, def = pcall(cjson.decode, redis.call('HGET', k.defs, digest) or '')
  if not ok or type(def) ~= 'table' or type(def.name) ~= 'string' then return true end
  local text = redis.call('HGET', k.jobs, def.name)
  local e = entry_of(text)
  return text and (not e or e.digest == digest)
end

for _, announcement in ipairs(args.announcements or {}) do redis.call('ZREM', k.announced, announcement) end
for _, digest in ipairs(args.chunks or {}) do redis.call('HDEL', k.chunks, digest) end
for _, digest in ipairs(args.defs or {}) do
  if not named(digest) then redis.call('HDEL', k.defs, digest) end
end
return 'done'
