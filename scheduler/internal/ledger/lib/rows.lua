-- Rows of runs: making one, and finding one.
-- needs: codec/row

-- The row of an ended run or, with r.kind T, of a sharded tick, made of the run's own record.
local function end_row(id, r, outcome, reason, started, ended, tries, err)
  r.kind, r.run, r.outcome, r.reason = r.kind or 'R', id, outcome, reason
  r.started, r.at, r.tries, r.late, r.error = started, ended, tries, '', err
  return row_text(r)
end

-- Finds the row of a run by its id or, with asked, by a request's id; newest first. Returns its
-- index from the tail, and the row.
local function find_row(key, id, asked)
  local from = -1
  while true do
    local rows = redis.pcall('LRANGE', key, from - 31, from)
    if rows.err then return nil end
    for i = #rows, 1, -1 do
      local r = string.find(rows[i], id, 1, true) and row_of(rows[i])
      if r and (r.run == id or asked and r.request == id) then return from - (#rows - i), r end
    end
    if #rows < 32 then return nil end
    from = from - 32
  end
end
