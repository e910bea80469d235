-- The order of revisions, and of the ids of moves.

-- Whether revision a comes after b: byte by byte, because Lua's own < uses the server's locale.
local function newer(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end
