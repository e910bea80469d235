-- Ends a promotion, if it is still under way.
-- keys: control
-- Arguments: promotedArgs in promote.go.
-- Returns 1: the promotion has ended; 0: another promotion is under way, or none
-- needs: lib/args
if redis.call('HGET', k.control, 'promoting') ~= args.promotion then return 0 end
redis.call('HDEL', k.control, 'promoting')
return 1
