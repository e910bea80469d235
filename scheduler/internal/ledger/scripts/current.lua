-- Registers those jobs of a stored chunk whose stored definitions are the chunk's, as define does for each of them. A node that
-- starts again names its chunks, and need not name the jobs.
-- KEYS[1] jobs  KEYS[2] due  KEYS[3] chunks  KEYS[4] the partition's gate
-- ARGV[1] digest of the chunk  ARGV[2] revision
-- Returns {'closed', 'state|move|words'}, or {} when the chunk is not stored, else one text: for each job, in the chunk's order, its
-- cursor, '-' where its schedule has no more, '' where it is to be defined; parted by commas
-- needs: lib/newer lib/gate codec/entry
local shut = closed(KEYS[4])
if shut then return {'closed', shut} end
local held = string.match(redis.call('HGET', KEYS[3], ARGV[1]) or '', '^1|%d+|(.*)$')
if not held then return {} end
local names, digests = {}, {}
for job, digest in string.gmatch(held, '([^=,]+)=([^,]*)') do names[#names + 1], digests[#digests + 1] = job, digest end
if #names == 0 then return {} end
local entries, out = redis.call('HMGET', KEYS[1], unpack(names)), {}
for i, job in ipairs(names) do
  local e = entries[i] and entry_of(entries[i])
  if not e or e.digest ~= digests[i] then
    out[i] = ''
  else
    if newer(ARGV[2], e.revision) then
      e.revision = ARGV[2]
      redis.call('HSET', KEYS[1], job, entry_text(e))
    end
    if e.cursor == '' then
      redis.call('ZREM', KEYS[2], job)
    elseif tonumber(redis.call('ZSCORE', KEYS[2], job) or '') ~= tonumber(e.cursor) then -- it was postponed
      redis.call('ZADD', KEYS[2], e.cursor, job)
    end
    out[i] = e.cursor == '' and '-' or e.cursor
  end
end
return table.concat(out, ',')
