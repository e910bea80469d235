-- Keeps what runs have written so far. It leaves with the run's row, and the end of the run replaces it.
-- keys: runs kept
-- Arguments: tailArgs in tail.go; then for each run the last of what it wrote.
-- Returns how many are kept: not those of runs that have ended, that somebody was granted since, or whose records cannot be read.
-- needs: lib/args codec/run
local kept = 0
for i, run in ipairs(args.runs) do
  local _, _, token = string.match(redis.call('HGET', k.runs, run.id) or '', RUN_BEAT)
  if token == run.token then
    kept = kept + 1
    redis.call('HSET', k.kept, run.id, ARGV[i + 1])
  end
end
return kept
