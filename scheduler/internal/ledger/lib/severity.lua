-- Outcomes of a tick or shard, from the best to the worst. Of the last two, no tick has ended.
local SEVERITY = {succeeded = 1, skipped = 2, missed = 3, cancelled = 4, failed = 5, timed_out = 6, lost = 7, abandoned = 8, paused = 9,
  superseded = 10}
