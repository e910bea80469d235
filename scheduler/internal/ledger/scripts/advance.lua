-- Takes what a namespace's control record notes of a move from one state to another.
-- KEYS[1] control
-- Returns {word, move as it is noted, copies so far}
--   done       also when repeated
--   promoting  a promotion goes on, and this would seal the namespace
--   other      the move noted is not in a state that this may follow
--   gone       there is no namespace
-- needs: lib/base lib/newer codec/move
-- ARGV, written by gen from verbs.go:
--   id         id of the move
--   role       from or to
--   state      state to be; 'undone' takes the note away and remembers the id
--   own        states of this move that it may come from, each followed by a comma
--   others     the same, 'role/state', of an older one; 'none,' is no move
--   peer       address of the other side
--   counted    '1' to count one more copy
--   copies     how many copies there must have been, '' for any
--   then fields: fields and their values, to be set as well
local id, role, state, own, others, peer, counted, copies =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local fields = {unpack(ARGV, 9)}
-- end of ARGV
local us, ms = clock()
if redis.call('HEXISTS', KEYS[1], 'format') == 0 then return {'gone', '', 0} end
local text = redis.call('HGET', KEYS[1], 'move') or ''
local undone = redis.call('HGET', KEYS[1], 'undone') or ''
local m = text ~= '' and move_of(text)
if text ~= '' and not m then return {'other', text, 0} end

local function answer(word)
  return {word, redis.call('HGET', KEYS[1], 'move') or '', tonumber(redis.call('HGET', KEYS[1], 'copies') or '0')}
end

if state == 'undone' and undone == id then return answer('done') end
if m and m.id == id and m.role == role then
  if not string.find(',' .. own, ',' .. m.state .. ',', 1, true) then return answer(m.state == state and 'done' or 'other') end
  if copies ~= '' and redis.call('HGET', KEYS[1], 'copies') ~= copies then return answer('other') end
else
  local was = m and m.role .. '/' .. m.state or 'none'
  if not string.find(',' .. others, ',' .. was .. ',', 1, true) or m and not newer(id, m.id) or not newer(id, undone) then return answer('other') end
  if state == 'sealing' and (redis.call('HGET', KEYS[1], 'promoting') or '') ~= '' then return answer('promoting') end
  if m then redis.call('HSET', KEYS[1], 'before', text) end
end
if state == 'undone' then
  local before = redis.call('HGET', KEYS[1], 'before')
  redis.call('HSET', KEYS[1], 'undone', id)
  if before then redis.call('HSET', KEYS[1], 'move', before)
  elseif m and m.id == id then redis.call('HDEL', KEYS[1], 'move') end
  redis.call('HDEL', KEYS[1], 'before', 'servers')
  return answer('done')
end
if not (m and m.id == id and m.state == state) then redis.call('HSET', KEYS[1], 'move', move_text({id = id, role = role, state = state, peer = peer, at = int(ms)})) end
if counted == '1' then redis.call('HINCRBY', KEYS[1], 'copies', 1) end
if #fields > 0 then redis.call('HSET', KEYS[1], unpack(fields)) end
return answer('done')
