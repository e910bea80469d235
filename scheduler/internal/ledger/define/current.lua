-- Registers the jobs of a stored chunk whose stored definitions equal the chunk's, as define does
-- for each job. A restarted node names its chunks in place of its jobs.
-- keys: jobs defs due chunks gate
-- Returns {'closed', 'state|move|words'}, or {} when the chunk is not stored, else one text:
-- 'job=cursor' for each registered job, 'job=-' where the schedule has no next tick; parted by
-- commas
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
    elseif tonumber(redis.call('ZSCORE', k.due, job) or '') ~= tonumber(e.cursor) then -- the job was postponed
      redis.call('ZADD', k.due, e.cursor, job)
    end
    out[#out + 1] = job .. '=' .. (e.cursor == '' and '-' or e.cursor)
  end
end
return table.concat(out, ',')
