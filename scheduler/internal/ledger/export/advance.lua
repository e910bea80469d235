-- Changes the state of a move in a namespace's control record.
-- keys: control
-- Arguments: Step in movecontrol.go.
-- Returns {word, move as it is noted, copies so far}
--   done       also when repeated
--   promoting  a promotion goes on, and this would seal the namespace
--   other      the move noted is not in a state that this may follow
--   gone       there is no namespace
-- needs: lib/args lib/base lib/newer codec/move
local id, role, state = args.id, args.role, args.state
local us, ms = clock()
if redis.call('HEXISTS', k.control, 'format') == 0 then return {'gone', '', 0} end
local text = redis.call('HGET', k.control, 'move') or ''
local undone = redis.call('HGET', k.control, 'undone') or ''
local m = text ~= '' and move_of(text)
if text ~= '' and not m then return {'other', text, 0} end

local function answer(word)
  return {word, redis.call('HGET', k.control, 'move') or '', tonumber(redis.call('HGET', k.control, 'copies') or '0')}
end

if state == 'undone' and undone == id then return answer('done') end
if m and m.id == id and m.role == role then
  if not among(args.own, m.state) then return answer(m.state == state and 'done' or 'other') end
  if args.copies and redis.call('HGET', k.control, 'copies') ~= args.copies then return answer('other') end
else
  local was = m and m.role .. '/' .. m.state or 'none'
  if not among(args.older, was) or m and not newer(id, m.id) or not newer(id, undone) then return answer('other') end
  if state == 'sealing' and (redis.call('HGET', k.control, 'promoting') or '') ~= '' then return answer('promoting') end
  if m then redis.call('HSET', k.control, 'before', text) end
end
if state == 'undone' then
  local before = redis.call('HGET', k.control, 'before')
  redis.call('HSET', k.control, 'undone', id)
  if before then redis.call('HSET', k.control, 'move', before)
  elseif m and m.id == id then redis.call('HDEL', k.control, 'move') end
  redis.call('HDEL', k.control, 'before', 'servers')
  return answer('done')
end
if not (m and m.id == id and m.state == state) then
  redis.call('HSET', k.control, 'move', move_text({id = id, role = role, state = state, peer = args.peer, at = int(ms)}))
end
if args.count then redis.call('HINCRBY', k.control, 'copies', 1) end
for field, value in pairs(args.fields or {}) do redis.call('HSET', k.control, field, value) end
return answer('done')
