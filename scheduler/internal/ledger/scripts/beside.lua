-- Keeps definitions of a generation on standby beside the active ones. Of two of one job, compare-and-set on the
-- digest decides: the caller knows whose revision is the newer.
-- KEYS[1] beside  KEYS[2] former  and last the partition's gate
-- ARGV[1] generation  ARGV[2] age after which a definition that was not seen is dropped, ms
-- ARGV[3] the most generations that a partition keeps  ARGV[4] age at which one of them may give way to another, ms
-- ARGV[5] '1' to look for what is to be dropped first
-- then 5 for each item: job, digest, revision, digest expected ('' to write only where there is none), definition
-- Returns {'closed', 'state|move|words'}, {'full', how many}, or four for each item: word, and what is stored now: digest,
-- revision, digests that were replaced
--   kept     the definition is the stored one
--   differs  another one is stored
--   foreign  a record that this version does not understand
-- needs: lib/base lib/newer lib/gate
local shut = closed(KEYS[#KEYS])
if shut then return {'closed', shut} end
local beside, former, generation = KEYS[1], KEYS[2], ARGV[1]
local age, most, yields = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local us, ms = clock()
local RECORD = '^1|(%d+)|([^|]*)|([^|]*)|'

local function drop(field)
  redis.call('HDEL', beside, field)
  redis.call('HDEL', former, field)
end

-- Drops what is too old, and where this generation would be one too many, the one that was not seen for longest.
-- False when all of them were seen lately.
local function room()
  local fields, latest, n = {}, {}, 0
  local all = redis.call('HGETALL', beside)
  for i = 1, #all, 2 do
    local of, seen = string.match(all[i], '^([^|]*)|'), tonumber(string.match(all[i + 1], RECORD) or '')
    if of and seen and seen < ms - age then
      drop(all[i])
    elseif of and seen then
      if not fields[of] then fields[of], latest[of], n = {}, 0, n + 1 end
      fields[of][#fields[of] + 1] = all[i]
      latest[of] = math.max(latest[of], seen)
    end
  end
  if fields[generation] or n < most then return true end
  local oldest
  for of, seen in pairs(latest) do
    if not oldest or seen < latest[oldest] or seen == latest[oldest] and newer(oldest, of) then oldest = of end
  end
  if latest[oldest] > ms - yields then return false end
  for _, field in ipairs(fields[oldest]) do drop(field) end
  return true
end

if ARGV[5] == '1' and not room() then return {'full', int(most)} end

-- As in define: the last eight digests that were replaced, newest first.
local function replace(field, was, digest)
  local list = {was}
  for one in string.gmatch(redis.call('HGET', former, field) or '', '[^,]+') do
    if one ~= was and one ~= digest and #list < 8 then list[#list + 1] = one end
  end
  redis.call('HSET', former, field, table.concat(list, ','))
end

local out = {}
for i = 1, (#ARGV - 5) / 5 do
  local a = 6 + (i - 1) * 5
  local job, digest, revision, was, def = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  local field, word = generation .. '|' .. job, 'kept'
  local stored = redis.call('HGET', beside, field)
  local seen, rev, held = string.match(stored or '', RECORD)
  if stored and not seen then
    word, held, rev = 'foreign', '', ''
  elseif stored and held ~= digest and held ~= was then
    word = 'differs'
  else
    if stored and held == digest and newer(rev, revision) then revision = rev end
    redis.call('HSET', beside, field, '1|' .. int(ms) .. '|' .. revision .. '|' .. digest .. '|' .. def)
    if stored and held ~= digest then replace(field, held, digest) end
    held, rev = digest, revision
  end
  out[#out + 1], out[#out + 2], out[#out + 3], out[#out + 4] = word, held, rev, redis.call('HGET', former, field) or ''
end
return out
