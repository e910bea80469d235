-- Writes one document, all of it or nothing: a job that a move brings into a partition it fills, or
-- a backup's job that does not exist yet. A repeat by a move writes the same.
-- KEYS[1] gate  KEYS[2] jobs  KEYS[3...] keys of the partition
-- ARGV[1] job, '' for records of no job  ARGV[2] id of the move, '' for a backup
-- ARGV[3] number of the move's copy
-- then for each write: D(elete), H(ash), N (field of a hash, if absent), Z (sorted set; the higher
--   score stays), R(ows, to a list), L(ine of a list, unless equal to its last one), the key's place
--   in KEYS, the number of values, and the values
-- Returns 'done', 'exists', 'stale' (a later copy has begun), 'closed|state|move|words', or the
-- gate of a partition that this move does not fill.
-- needs: lib/gate codec/gate
local job, move, copy = ARGV[1], ARGV[2], ARGV[3]
if move == '' then
  local shut = closed(KEYS[1])
  -- guard:import-gate P7 a backup brings nothing into a partition that a move has closed
  if shut then return 'closed|' .. shut end
  -- guard:import-new P1 a backup never overwrites an existing job
  if redis.call('HEXISTS', KEYS[2], job) == 1 then return 'exists' end
else
  local text = redis.call('GET', KEYS[1])
  local g = gate_of(text)
  -- guard:import-filling P7 a move writes only into a partition that it fills
  if not text or not g or g.state ~= 'filling' or g.move ~= move then return text or 'none' end
  -- guard:import-copy P7 a copy that a later one has replaced writes nothing more
  if string.match(g.words, ', copy (%d+)$') ~= copy then return 'stale' end
end
local at = 4
while at <= #ARGV do
  local what, key, n = ARGV[at], KEYS[tonumber(ARGV[at + 1])], tonumber(ARGV[at + 2])
  local last = at + 2 + n
  for first = at + 3, last, 1000 do
    local to = math.min(first + 999, last)
    if what == 'H' then redis.call('HSET', key, unpack(ARGV, first, to))
    elseif what == 'N' then redis.call('HSETNX', key, ARGV[first], ARGV[to])
    elseif what == 'R' then redis.call('RPUSH', key, unpack(ARGV, first, to))
    elseif what == 'L' then
      if redis.call('LINDEX', key, -1) ~= ARGV[first] then redis.call('RPUSH', key, ARGV[first]) end
    else
      for i = first, to, 2 do
        local had = redis.call('ZSCORE', key, ARGV[i + 1])
        if not had or tonumber(had) < tonumber(ARGV[i]) then redis.call('ZADD', key, ARGV[i], ARGV[i + 1]) end
      end
    end
  end
  if what == 'D' then redis.call('DEL', key) end
  at = last + 1
end
return 'done'
