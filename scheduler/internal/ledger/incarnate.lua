-- Gives a partition an incarnation where there is none, or where the caller names the present one.
-- Nodes of another incarnation report their runs and cursors before anything is granted.
-- keys: gate incarnation
-- Arguments: incarnateArgs in epoch.go.
-- Returns the partition's incarnation, or '' where there is no gate and the caller wants none made
-- needs: lib/args lib/base codec/gate
local gate, held = redis.call('GET', k.gate), redis.call('GET', k.incarnation)
if not gate and not args.open then return '' end
if gate and held and held ~= args.was then return held end
local us, ms = clock()
local id = args.lost and args.id .. '@' .. int(ms) or args.id
if not gate then
  redis.call('SET', k.gate, gate_text({epoch = args.epoch, generation = args.generation, state = 'open', move = '', words = ''}))
end
redis.call('SET', k.incarnation, id)
return id
