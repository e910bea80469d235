-- Gives a partition an incarnation where it has none, or where it has one that the caller names. Nodes that knew another one report what
-- they know before anything is granted.
-- keys: gate incarnation
-- Arguments: incarnateArgs in epoch.go.
-- Returns the partition's incarnation, or '' where there is no gate and none is to be made
-- needs: lib/args lib/base codec/gate
local held = redis.call('MGET', k.gate, k.incarnation)
if not held[1] and not args.open then return '' end
if held[1] and held[2] and held[2] ~= args.was then return held[2] end
local us, ms = clock()
local id = args.lost and args.id .. '@' .. int(ms) or args.id
if not held[1] then
  redis.call('SET', k.gate, gate_text({epoch = args.epoch, generation = args.generation, state = 'open', move = '', words = ''}))
end
redis.call('SET', k.incarnation, id)
return id
