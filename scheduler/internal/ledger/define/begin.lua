-- Begins a promotion, or resumes the same promotion after an interruption: writes the promotion
-- with an epoch of its own and, for a promotion of all jobs, the active generation.
-- keys: control
-- Arguments: beginArgs in promote.go.
-- Returns {'begun' or 'resumed', epoch}, {'half', generation} when this promotion is of some jobs
-- and a promotion of all jobs has not ended, {'stale', epoch} when another promotion has begun
-- since, {'clock', redis ms}, {'closed', 'state|move|words'}, or {'unknown'} where there is no
-- namespace.
-- needs: lib/args lib/base codec/move codec/promotion
local generation, pattern, cancel, least = args.generation, args.pattern, args.cancel and '1' or '', args.least
local us, ms = clock()
if clock_off(ms, args.now, args.skew) then return {'clock', int(ms)} end
if redis.call('HEXISTS', k.control, 'format') == 0 then return {'unknown'} end
local m = move_of(redis.call('HGET', k.control, 'move'))
local shut = {sealing = 'sealed', sealed = 'sealed', moved = 'sealed', filling = 'filling', opening = 'filling', burnt = 'burnt'}
if m and shut[m.state] then return {'closed', shut[m.state] .. '|' .. m.id .. '|' .. m.peer} end
local under = promotion_of(redis.call('HGET', k.control, 'promoting'))
if under and under.generation == generation and under.pattern == pattern and under.cancel == cancel and tonumber(under.epoch) >= least then
  return {'resumed', under.epoch}
end
local last = redis.call('HGET', k.control, 'epoch') or '0'
if last ~= args.seen then return {'stale', last} end
if under and pattern ~= '' and under.pattern == '' then return {'half', under.generation} end
local epoch = int(math.max(tonumber(last) or 0, least) + 1)
redis.call('HSET', k.control, 'epoch', epoch, 'promoting', promotion_text({epoch = epoch, generation = generation, pattern = pattern, cancel = cancel}))
if pattern == '' then redis.call('HSET', k.control, 'generation', generation) end
return {'begun', epoch}
