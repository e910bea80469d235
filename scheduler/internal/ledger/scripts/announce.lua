-- Notes which definitions the nodes of a generation hold, in chunks. A chunk that is stored is named by its digest alone.
-- KEYS[1] chunks  KEYS[2] announced  KEYS[3] the partition's gate
-- ARGV[1] generation  ARGV[2] revision
-- then 2 for each chunk: its digest, and its text, '' to ask whether it is stored
-- Returns {'closed', 'state|move|words'}, or the digests of those that are not stored
-- needs: lib/base lib/gate
local chunks, announced, generation, revision = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local shut = closed(KEYS[3])
if shut then return {'closed', shut} end
local us, ms = clock()
local missing = {}
for i = 3, #ARGV, 2 do
  local digest, text = ARGV[i], ARGV[i + 1]
  local added = text ~= '' and redis.call('HSETNX', chunks, digest, '1|' .. int(ms) .. '|' .. text) or 0
  if text == '' and redis.call('HEXISTS', chunks, digest) == 0 then
    missing[#missing + 1] = digest
  else
    added = added + redis.call('ZADD', announced, int(ms), digest .. '|' .. generation .. '|' .. revision)
  end
  if added > 0 then redis.call('HINCRBY', chunks, 'changes', 1) end -- tidy goes by it
end
return missing
