-- Replaces the roster's drained names by the names of the other side of a move.
-- keys: control drains
-- Arguments: drainsArgs in movecontrol.go.
-- Returns 'done', or the move that is noted here.
-- needs: lib/args codec/move
local text = redis.call('HGET', k.control, 'move')
local m = move_of(text)
if not m or m.id ~= args.id or m.role ~= 'to' or m.state ~= args.state then return text or 'none' end
redis.call('DEL', k.drains)
for name, record in pairs(args.drains or {}) do redis.call('HSET', k.drains, name, record) end
return 'done'
