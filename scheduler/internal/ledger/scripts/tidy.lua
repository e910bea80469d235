-- Takes away what the caller found to be of no use any more: announcements that nobody renewed, chunks that no announcement
-- names, and definitions that neither a chunk nor an entry names. Does nothing when a chunk was announced since.
-- KEYS[1] chunks  KEYS[2] announced  KEYS[3] defs  KEYS[4] jobs  KEYS[5] the partition's gate
-- ARGV[1] changes, as the caller saw them  ARGV[2] the instant up to which an announcement is old, ms
-- ARGV[3] number of announcements  ARGV[4] number of chunks
-- then the announcements, the chunks, and the digests of definitions
-- Returns 'closed|state|move|words', or one word: done, changed.
-- needs: lib/gate codec/entry
local chunks, announced, defs, jobs = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local changes, old, first, second = ARGV[1], tonumber(ARGV[2]), 4 + tonumber(ARGV[3]), 4 + tonumber(ARGV[3]) + tonumber(ARGV[4])
local shut = closed(KEYS[5])
if shut then return 'closed|' .. shut end
if (redis.call('HGET', chunks, 'changes') or '') ~= changes then return 'changed' end
for i = 5, first do
  local seen = redis.call('ZSCORE', announced, ARGV[i])
  if seen and tonumber(seen) > old then return 'changed' end
end

-- Whether a job's entry names the definition, or may: it cannot be read.
local function named(digest)
  local ok, def = pcall(cjson.decode, redis.call('HGET', defs, digest) or '')
  if not ok or type(def) ~= 'table' or type(def.name) ~= 'string' then return true end
  local text = redis.call('HGET', jobs, def.name)
  local e = entry_of(text)
  return text and (not e or e.digest == digest)
end

for i = 5, first do redis.call('ZREM', announced, ARGV[i]) end
for i = first + 1, second do redis.call('HDEL', chunks, ARGV[i]) end
for i = second + 1, #ARGV do
  if not named(ARGV[i]) then redis.call('HDEL', defs, ARGV[i]) end
end
return 'done'
