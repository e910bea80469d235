-- Keeps what runs have written so far. It leaves with the run's row, and the end of the run replaces it.
-- keys: runs kept
-- Returns how many are kept: not those of runs that have ended, that somebody was granted since, or whose records cannot be read.
-- needs: codec/run
-- ARGV, written by gen from verbs.go:
-- then for each item:
--   run        id of the run
--   token      its token
--   output     the last of what it wrote, '' for nothing
local n = (#ARGV - 0) / 3
local function item(i)
  local a = 1 + (i - 1) * 3
  return {run = ARGV[a], token = ARGV[a + 1], output = ARGV[a + 2]}
end
-- end of ARGV
local kept = 0
for i = 1, n do
  local c = item(i)
  local _, _, token = string.match(redis.call('HGET', k.runs, c.run) or '', RUN_BEAT)
  if token == c.token then
    kept = kept + 1
    if c.output == '' then redis.call('HDEL', k.kept, c.run) else redis.call('HSET', k.kept, c.run, c.output) end
  end
end
return kept
