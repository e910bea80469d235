-- Writes a part of what a move copies into a partition. The gate's words say which part of which copy was the last, so
-- each is written once, in order, and nothing of a copy after a later one has begun.
-- KEYS[1] gate  KEYS[2...] keys of the partition
-- ARGV[1] id of the move  ARGV[2] number of the copy  ARGV[3] number of the part; part 0 begins the copy and holds nothing
-- then for each thing to do: D(elete), H(ash), Z (sorted set; the higher score stays), R(ows, to a list), the key's place
--   in KEYS, the number of values, and the values
-- Returns 'done' (also when repeated), 'stale' (another copy has begun, or a part is missing), or the gate of a partition
-- that this move does not fill.
-- needs: lib/base codec/gate
local id, copy, part = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local text = redis.call('GET', KEYS[1])
local g = gate_of(text)
if not text or not g or g.state ~= 'filling' or g.move ~= id then return text or 'none' end
local from, c, p = string.match(g.words, '^(.*), copy (%d+), part (%d+)$')
if not from then return text end
c, p = tonumber(c), tonumber(p)
if c == copy and part <= p then return 'done' end
if not (part == 0 and copy > c or copy == c and part == p + 1) then return 'stale' end
local at = 4
while at <= #ARGV do
  local what, key, n = ARGV[at], KEYS[tonumber(ARGV[at + 1])], tonumber(ARGV[at + 2])
  local first, last = at + 3, at + 2 + n
  if what == 'D' then redis.call('DEL', key)
  elseif what == 'H' then redis.call('HSET', key, unpack(ARGV, first, last))
  elseif what == 'R' then redis.call('RPUSH', key, unpack(ARGV, first, last))
  else
    for i = first, last, 2 do
      local had = redis.call('ZSCORE', key, ARGV[i + 1])
      if not had or tonumber(had) < tonumber(ARGV[i]) then redis.call('ZADD', key, ARGV[i], ARGV[i + 1]) end
    end
  end
  at = last + 1
end
g.words = from .. ', copy ' .. int(copy) .. ', part ' .. int(part)
redis.call('SET', KEYS[1], gate_text(g))
return 'done'
