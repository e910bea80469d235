-- Registers those jobs of a stored chunk whose stored definitions are the chunk's and are there, as define does for each of them. A node
-- that starts again names its chunks, and need not name the jobs.
-- keys: jobs defs due chunks gate
-- Returns {'closed', 'state|move|words'}, or {} when the chunk is not stored, else one text: 'job=cursor' for each job that is
-- registered, 'job=-' where its schedule has no more; parted by commas
-- needs: lib/newer lib/gate codec/entry
-- ARGV, written by gen from verbs.go:
--   digest     of a chunk
--   revision   of the node
local digest, revision = ARGV[1], ARGV[2]
-- end of ARGV
local shut = closed(k.gate)
-- guard:current-gate P7 a partition that a move has closed registers no jobs
if shut then return {'closed', shut} end
local held = string.match(redis.call('HGET', k.chunks, digest) or '', '^1|%d+|(.*)$')
if not held then return {} end
local names, digests = {}, {}
for job, digest in string.gmatch(held, '([^=,]+)=([^,]*)') do names[#names + 1], digests[#digests + 1] = job, digest end
if #names == 0 then return {} end
local entries, out = redis.call('HMGET', k.jobs, unpack(names)), {}
for i, job in ipairs(names) do
  local e = entries[i] and entry_of(entries[i])
  if e and e.digest == digests[i] and redis.call('HEXISTS', k.defs, e.digest) == 1 then
    if newer(revision, e.revision) then
      e.revision = revision
      redis.call('HSET', k.jobs, job, entry_text(e))
    end
    if e.cursor == '' then
      redis.call('ZREM', k.due, job)
    elseif tonumber(redis.call('ZSCORE', k.due, job) or '') ~= tonumber(e.cursor) then -- it was postponed
      redis.call('ZADD', k.due, e.cursor, job)
    end
    out[#out + 1] = job .. '=' .. (e.cursor == '' and '-' or e.cursor)
  end
end
return table.concat(out, ',')
