-- Notes which definitions the nodes of a generation hold, in chunks. A stored chunk is named by its
-- digest alone.
-- keys: chunks announced gate
-- Returns {'closed', 'state|move|words'}, or the digests of the chunks that are not stored
-- needs: lib/base lib/gate
-- ARGV, written by gen from verbs.go:
--   now        the caller's idea of Redis' time, ms, 0 for none
--   skew       tolerated difference, ms
--   generation of the nodes
--   revision   of the nodes
-- then for each item:
--   digest     of a chunk
--   text       its text, '' to find out whether the digest is stored
local now, skew, generation, revision = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local n = (#ARGV - 4) / 2
local function item(i)
  local a = 5 + (i - 1) * 2
  return {digest = ARGV[a], text = ARGV[a + 1]}
end
-- end of ARGV
local shut = closed(k.gate)
-- guard:announce-gate P7 a partition that a move has closed takes no announcement: a chunk would not move with it
if shut then return {'closed', shut} end
local us, ms = clock(now, skew)
local missing = {}
for i = 1, n do
  local c = item(i)
  local digest, text = c.digest, c.text
  local added = text ~= '' and redis.call('HSETNX', k.chunks, digest, '1|' .. int(ms) .. '|' .. text) or 0
  if text == '' and redis.call('HEXISTS', k.chunks, digest) == 0 then
    missing[#missing + 1] = digest
  else
    added = added + redis.call('ZADD', k.announced, int(ms), digest .. '|' .. generation .. '|' .. revision)
  end
  if added > 0 then redis.call('HINCRBY', k.chunks, 'changes', 1) end -- tidy looks for changes only
end
return missing
