-- Stores definitions that no entry names yet, of a generation on standby.
-- KEYS[1] defs  KEYS[2] the partition's gate
-- ARGV 2 for each: its digest, and its text, '' to ask whether it is stored
-- Returns {'closed', 'state|move|words'}, or the digests of those that are not stored
-- needs: lib/gate
local shut = closed(KEYS[2])
if shut then return {'closed', shut} end
local missing = {}
for i = 1, #ARGV, 2 do
  if ARGV[i + 1] ~= '' then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  elseif redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0 then
    missing[#missing + 1] = ARGV[i]
  end
end
return missing
