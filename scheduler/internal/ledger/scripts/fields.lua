-- Reads a page of the names of a hash's fields. HKEYS would hold up Redis for all of them, HSCAN alone would send the values too, and
-- HSCAN NOVALUES needs Redis 7.4.
-- KEYS[1] hash
-- ARGV[1] cursor, '0' at first  ARGV[2] how many fields to look at
-- Returns the next cursor, '0' at the end, and the names. A name may come twice.
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local out = { page[1] }
for i = 1, #page[2], 2 do out[#out + 1] = page[2][i] end
return out
