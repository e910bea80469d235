-- Keeps the latest output of runs in flight. It is deleted with the run's row, and the run's end
-- replaces it.
-- keys: runs kept
-- Arguments: tailArgs in tail.go; then for each run the end of its output.
-- Returns how many are kept. A run that has ended, was granted anew or cannot be read keeps none.
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
