-- Puts off the next look at a job that is overdue and that nobody alive holds. Its cursor stays.
-- KEYS[1] jobs  KEYS[2] due
-- ARGV[1] job  ARGV[2] the due time seen, ms  ARGV[3] when to look again, ms
-- Returns one word: postponed, moved, unknown.
-- needs: codec/entry
local e = entry_of(redis.call('HGET', KEYS[1], ARGV[1]))
if not e then return 'unknown' end
local due = redis.call('ZSCORE', KEYS[2], ARGV[1])
if e.cursor == '' or not due or tonumber(due) ~= tonumber(ARGV[2]) then return 'moved' end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
return 'postponed'
