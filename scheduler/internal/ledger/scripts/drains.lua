-- Replaces the names that are drained, which the roster keeps, by those of the other side of a move.
-- KEYS[1] control  KEYS[2] drains
-- ARGV[1] id of the move  ARGV[2] state in which the move must be here  then names and their records
-- Returns 'done', or the move that is noted here instead.
-- needs: codec/move
local text = redis.call('HGET', KEYS[1], 'move')
local m = move_of(text)
if not m or m.id ~= ARGV[1] or m.role ~= 'to' or m.state ~= ARGV[2] then return text or 'none' end
redis.call('DEL', KEYS[2])
if #ARGV > 2 then redis.call('HSET', KEYS[2], unpack(ARGV, 3)) end
return 'done'
