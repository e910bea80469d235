-- Begins a promotion, or goes on with the same one that was interrupted: writes what is to be promoted with an epoch
-- of its own, and, if that is all jobs, the active generation.
-- KEYS[1] control
-- Returns {'begun' or 'resumed', epoch}, {'half', generation} when one of all jobs has not ended and this is of some, for it would
-- be forgotten half way; {'moved', epoch} when another promotion has begun since, {'clock', redis ms},
-- {'closed', 'state|move|words'}, or {'unknown'} where there is no namespace.
-- needs: lib/base codec/move codec/promotion
-- ARGV, written by gen from verbs.go:
--   generation the generation to be promoted
--   pattern    pattern of job names, '' for all
--   cancel     '1' to cancel what runs
--   least      the highest epoch that a partition's gate has
--   seen       the epoch that the caller has seen in the control record
--   now        the caller's idea of Redis' time, ms
--   skew       tolerated difference, ms
local generation, pattern, cancel, least, seen, now, skew =
  ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7]
-- end of ARGV
local us, ms = clock()
if astray(ms, now, skew) then return {'clock', int(ms)} end
if redis.call('HEXISTS', KEYS[1], 'format') == 0 then return {'unknown'} end
local m = move_of(redis.call('HGET', KEYS[1], 'move'))
local shut = {sealing = 'sealed', sealed = 'sealed', moved = 'sealed', filling = 'filling', opening = 'filling', burnt = 'burnt'}
if m and shut[m.state] then return {'closed', shut[m.state] .. '|' .. m.id .. '|' .. m.peer} end
local under = promotion_of(redis.call('HGET', KEYS[1], 'promoting'))
if under and under.generation == generation and under.pattern == pattern and under.cancel == cancel and tonumber(under.epoch) >= least then
  return {'resumed', under.epoch}
end
local last = redis.call('HGET', KEYS[1], 'epoch') or '0'
if last ~= seen then return {'moved', last} end
if under and pattern ~= '' and under.pattern == '' then return {'half', under.generation} end
local epoch = int(math.max(tonumber(last) or 0, least) + 1)
redis.call('HSET', KEYS[1], 'epoch', epoch, 'promoting', promotion_text({epoch = epoch, generation = generation, pattern = pattern, cancel = cancel}))
if pattern == '' then redis.call('HSET', KEYS[1], 'generation', generation) end
return {'begun', epoch}
