-- Stores definitions that no entry names yet, of a generation on standby.
-- keys: defs gate
-- Returns {'closed', 'state|move|words'}, or the digests of the definitions that are not stored
-- needs: lib/gate
-- ARGV, written by gen from verbs.go:
-- then for each item:
--   digest     of a definition
--   text       its text, '' to find out whether the digest is stored
local n = (#ARGV - 0) / 2
local function item(i)
  local a = 1 + (i - 1) * 2
  return {digest = ARGV[a], text = ARGV[a + 1]}
end
-- end of ARGV
local shut = closed(k.gate)
-- guard:store-gate P7 a partition that a move has closed takes no definition of a chunk
if shut then return {'closed', shut} end
local missing = {}
for i = 1, n do
  local c = item(i)
  if c.text ~= '' then
    redis.call('HSET', k.defs, c.digest, c.text)
  elseif redis.call('HEXISTS', k.defs, c.digest) == 0 then
    missing[#missing + 1] = c.digest
  end
end
return missing
