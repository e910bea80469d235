-- Begins a promotion, or goes on with the same one that was interrupted: writes what is to be promoted with an epoch
-- of its own, and, if that is all jobs, the active generation.
-- KEYS[1] control
-- ARGV[1] generation  ARGV[2] pattern of job names, '' for all  ARGV[3] '1' to cancel what runs
-- ARGV[4] the highest epoch that a partition's gate has  ARGV[5] the epoch that the caller has seen in the control record
-- ARGV[6] the caller's idea of Redis' time, ms  ARGV[7] tolerated difference, ms
-- Returns {'begun' or 'resumed', epoch}, {'half', generation} when one of all jobs has not ended and this is of some, for it would
-- be forgotten half way; {'moved', epoch} when another promotion has begun since, {'clock', redis ms},
-- {'closed', 'state|move|words'}, or {'unknown'} where there is no namespace.
local generation, pattern, cancel, least = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local us, ms = clock()
if astray(ms, ARGV[6], ARGV[7]) then return {'clock', int(ms)} end
if redis.call('HEXISTS', KEYS[1], 'format') == 0 then return {'unknown'} end
local id, state, peer = string.match(redis.call('HGET', KEYS[1], 'move') or '', '^1|([^|]*)|[^|]*|([^|]*)|([^|]*)|')
local shut = {sealing = 'sealed', sealed = 'sealed', moved = 'sealed', filling = 'filling', opening = 'filling', burnt = 'burnt'}
if state and shut[state] then return {'closed', shut[state] .. '|' .. id .. '|' .. peer} end
local rest = '|' .. generation .. '|' .. pattern .. '|' .. cancel
local under, same = string.match(redis.call('HGET', KEYS[1], 'promoting') or '', '^1|(%d+)(|.*)$')
if same == rest and tonumber(under) >= least then return {'resumed', under} end
local last = redis.call('HGET', KEYS[1], 'epoch') or '0'
if last ~= ARGV[5] then return {'moved', last} end
local half = under and pattern ~= '' and string.match(same, '^|([^|]*)||')
if half then return {'half', half} end
local epoch = int(math.max(tonumber(last) or 0, least) + 1)
redis.call('HSET', KEYS[1], 'epoch', epoch, 'promoting', '1|' .. epoch .. rest)
if pattern == '' then redis.call('HSET', KEYS[1], 'generation', generation) end
return {'begun', epoch}
