-- Returns the holder of a lock, or the holders of a semaphore or a read-write lock.
--
-- Behind token.lua, queue.lua, which names the KEYS, and share.lua.
--
-- Returns {waiters, kind, then for each holder {value, left, who, weight}}: the number of living
-- waiters; the kind, see share.lua, '1' for a lock; "token:owner", with '-' in front once it was
-- revoked; ms until another owner can have it; the holder's text; how many permits it takes.
local value = redis.pcall('GET', lock)
local channel_of, waiting, all = the_queue().channel_of, 0, redis.call('HVALS', waiters)
local is_share = type(value) == 'table'
local now = (#all > 0 or is_share) and server_micros()
for _, text in ipairs(all) do
  if channel_of(text, now / 1000) then waiting = waiting + 1 end
end
if not value then return {waiting, '1'} end
if not is_share then
  return {waiting, '1', {value, redis.call('PTTL', lock), redis.call('HGET', state, 'h') or '', 1}}
end
local share = read_share(now)
if not share then error(value.err) end
local reply = {waiting, share.kind or '1'}
for owner, held in pairs(share.of) do
  local text = (held.revoked and '-' or '') .. held.token .. ':' .. owner
  reply[#reply + 1] = {text, held.lapses - millis(now), held.who, held.weight}
end
return reply
