-- Makes the control record of a namespace that a move is going to fill; or burns the move there, so that it never will be.
-- KEYS[1] control
-- Returns {word, move as it is noted}
--   done        also when repeated
--   partitions  what was here before had another number of them, and nodes may still go by that
--   taken       a namespace is here that is none of this move's
-- needs: lib/base lib/newer codec/move
-- ARGV, written by gen from verbs.go:
--   id         id of the move
--   format     format of the namespace to be
--   partitions its number of partitions
--   generation its active generation
--   epoch      number of the last promotion
--   peer       address of the other side
--   state      filling or burnt
--   back       id of the move by which the namespace went from here to where it comes back from, or ''
local id, format, partitions, generation, epoch, peer, state, back =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
-- end of ARGV
local us, ms = clock()
local text = redis.call('HGET', KEYS[1], 'move')
local m = move_of(text)
if m and m.id == id and m.role == 'to' then return {m.state == state and 'done' or 'taken', text} end
if redis.call('EXISTS', KEYS[1]) == 1 then
  if redis.call('HGET', KEYS[1], 'format') ~= format then return {'taken', text or ''} end
  if not m or not newer(id, m.id) then return {'taken', text or ''} end
  local free = m.role == 'to' and m.state == 'burnt' or m.role == 'from' and m.state == 'moved' and m.id == back
  if not free then return {'taken', text} end
  local n = redis.call('HGET', KEYS[1], 'partitions')
  if n ~= partitions then return {'partitions', n} end
end
local note = move_text({id = id, role = 'to', state = state, peer = peer, at = int(ms)})
redis.call('HSET', KEYS[1], 'format', format, 'partitions', partitions, 'generation', generation, 'epoch', epoch, 'move', note)
redis.call('HDEL', KEYS[1], 'copied', 'copies', 'before')
return {'done', note}
