-- The arguments of a verb that is called rarely.

-- The arguments by their names, as the verb's struct in Go spells them in JSON, and bytes beside
-- them that need not be text. A time that is stored or compared with a record is text: Lua would
-- print its number with too few digits.
local args, bytes = cjson.decode(ARGV[1]), ARGV[2]

-- Whether a list has a word. An empty list may be nil.
local function among(list, word)
  for _, one in ipairs(list or {}) do
    if one == word then return true end
  end
  return false
end
