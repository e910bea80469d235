-- Ends a promotion, if it is still the one that is under way.
-- KEYS[1] control
-- ARGV[1] what it wrote when it began
-- Returns 1: it has ended; 0: another one is under way, or none
if redis.call('HGET', KEYS[1], 'promoting') ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], 'promoting')
return 1
