-- Begins a promotion, or goes on with the same one that was interrupted: writes what is to be promoted with an epoch
-- of its own, and, if that is all jobs, the active generation.
-- KEYS[1] control
-- ARGV[1] generation  ARGV[2] pattern of job names, '' for all  ARGV[3] '1' to cancel what runs
-- ARGV[4] the highest epoch that a partition's gate has  ARGV[5] the epoch that the caller has seen in the control record
-- ARGV[6] the caller's idea of Redis' time, ms  ARGV[7] tolerated difference, ms
-- Returns {'begun' or 'resumed', epoch}, {'half', generation} when one of all jobs has not ended and this is of some, for it would
-- be forgotten half way; {'moved', epoch} when another promotion has begun since, {'clock', redis ms},
-- {'closed', 'state|move|words'}, or {'unknown'} where there is no namespace.
-- needs: lib/base codec/move codec/promotion
local generation, pattern, cancel, least = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local us, ms = clock()
if astray(ms, ARGV[6], ARGV[7]) then return {'clock', int(ms)} end
if redis.call('HEXISTS', KEYS[1], 'format') == 0 then return {'unknown'} end
local m = move_of(redis.call('HGET', KEYS[1], 'move'))
local shut = {sealing = 'sealed', sealed = 'sealed', moved = 'sealed', filling = 'filling', opening = 'filling', burnt = 'burnt'}
if m and shut[m.state] then return {'closed', shut[m.state] .. '|' .. m.id .. '|' .. m.peer} end
local under = promotion_of(redis.call('HGET', KEYS[1], 'promoting'))
if under and under.generation == generation and under.pattern == pattern and under.cancel == cancel and tonumber(under.epoch) >= least then
  return {'resumed', under.epoch}
end
local last = redis.call('HGET', KEYS[1], 'epoch') or '0'
if last ~= ARGV[5] then return {'moved', last} end
if under and pattern ~= '' and under.pattern == '' then return {'half', under.generation} end
local epoch = int(math.max(tonumber(last) or 0, least) + 1)
redis.call('HSET', KEYS[1], 'epoch', epoch, 'promoting', promotion_text({epoch = epoch, generation = generation, pattern = pattern, cancel = cancel}))
if pattern == '' then redis.call('HSET', KEYS[1], 'generation', generation) end
return {'begun', epoch}
