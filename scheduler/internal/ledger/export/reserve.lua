-- Makes the control record of a namespace that a move is going to fill; or burns the move there, so
-- that the move can never fill it.
-- keys: control notified
-- Arguments: reserveArgs in movecontrol.go.
-- Returns {word, move as it is noted}
--   done        also when repeated
--   partitions  the namespace had another number of partitions before, and nodes may still use that
--               number
--   taken       another namespace is here, or this move in another state
-- needs: lib/args lib/base lib/newer codec/move
local id = args.id
local us, ms = clock()
local text = redis.call('HGET', k.control, 'move')
local m = move_of(text)
if m and m.id == id and m.role == 'to' then return {m.state == args.state and 'done' or 'taken', text} end
if redis.call('EXISTS', k.control) == 1 then
  if redis.call('HGET', k.control, 'format') ~= args.format then return {'taken', text or ''} end
  if not m or not newer(id, m.id) then return {'taken', text or ''} end
  local free = m.role == 'to' and m.state == 'burnt' or m.role == 'from' and m.state == 'moved' and m.id == args.back
  if not free then return {'taken', text} end
  local n = redis.call('HGET', k.control, 'partitions')
  if n ~= args.partitions then return {'partitions', n} end
end
local note = move_text({id = id, role = 'to', state = args.state, peer = args.peer, at = int(ms)})
redis.call('HSET', k.control, 'format', args.format, 'partitions', args.partitions, 'generation', args.generation, 'epoch', args.epoch,
  'move', note)
redis.call('HDEL', k.control, 'copied', 'copies', 'before')
redis.call('DEL', k.notified) -- the events that were sent while the namespace was here before
return {'done', note}
