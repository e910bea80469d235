//go:build !race

package ledger

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// TestMoveMutants takes each check out of the scripts of a move, and the story must notice.
func TestMoveMutants(t *testing.T) {
	e := must(redistest.Embed())
	t.Cleanup(e.Close)
	client := e.Client()
	t.Cleanup(func() { _ = client.Close() })
	scripts := map[string]**redisconn.Script{"gate": &gateScript, "reserve": &reserveScript, "advance": &advanceScript,
		"adopt": &adoptScript, "wipe": &wipeScript, "drains": &drainsScript}
	for _, m := range []edit{
		{"gate", `if not string.find(mine and own or others,`, `if false and string.find(mine and own or others,`},
		{"gate", `local mine = g.move == id`, `local mine = true`},
		{"gate", `if not mine and not newer(id, g.move) then return text end`, ``},
		{"gate", `if state == 'filling' and`, `if false and`},
		{"gate", `g.state, g.move, g.words = state, id, words`, `g.state, g.words = state, words`},
		{"gate", `if epoch ~= '' then g.epoch, g.generation = epoch, generation end`, ``},
		{"gate", `if tail ~= '' and string.sub(g.words, -#tail) ~= tail then`, `if false then`},
		{"gate", `', copy ' .. copy .. ', part 0'`, `', part 0'`},
		{"gate", `if mine and g.state == state then return 'done' end`, ``},
		{"reserve", `if m and m.id == id and m.role == 'to' then return {m.state == state and 'done' or 'taken', text} end`, ``},
		{"reserve", `m.state == state and 'done' or 'taken'`, `'done'`},
		{"reserve", `if not m or not newer(id, m.id) then`, `if not m then`},
		{"reserve", `if not m or not newer(id, m.id) then`, `if m and not newer(id, m.id) then`},
		{"reserve", `if not free then return {'taken', text} end`, ``},
		{"reserve", ` and m.id == back`, ``},
		{"reserve", `m.role == 'from' and m.state == 'moved'`, `m.role == 'from'`},
		{"reserve", `if n ~= partitions then return {'partitions', n} end`, ``},
		{"advance", `== 0 then return {'gone', '', 0} end`, `== 9 then return {'gone', '', 0} end`},
		{"advance", `if ARGV[8] ~= '' and`, `if false and`},
		{"advance", `'before', 'servers')`, `'before')`},
		{"advance", `if state == 'undone' and undone == id then return answer('done') end`, ``},
		{"advance", `if m and m.id == id and m.role == role then`, `if m and m.role == role then`},
		{"advance", `if not string.find(',' .. own,`, `if false and string.find(',' .. own,`},
		{"advance", `if not string.find(',' .. others, ',' .. was .. ',', 1, true) or`, `if`},
		{"advance", ` or not newer(id, undone) then`, ` then`},
		{"advance", `if state == 'sealing' and`, `if false and`},
		{"advance", `redis.call('HSET', KEYS[1], 'undone', id)`, ``},
		{"advance", `if m then redis.call('HSET', KEYS[1], 'before', text) end`, ``},
		{"adopt", ` or g.state ~= 'filling' or`, ` or`},
		{"adopt", ` or g.move ~= id then`, ` then`},
		{"adopt", `if c == copy and part <= p then return 'done' end`, ``},
		{"adopt", `part == 0 and copy > c or copy == c and part == p + 1`, `part == 0 or copy == c and part == p + 1`},
		{"adopt", `part == 0 and copy > c or copy == c and part == p + 1`, `part == 0 and copy > c or copy == c`},
		{"adopt", `or copy == c and part == p + 1`, `or part == p + 1`},
		{"adopt", `g.words = from`, `local words = from`},
		{"wipe", ` or g.state ~= ARGV[1] or`, ` or`},
		{"wipe", ` or g.move ~= ARGV[2] then`, ` then`},
		{"drains", ` or m.id ~= ARGV[1] or`, ` or`},
		{"drains", ` or m.state ~= ARGV[2] then`, ` then`},
	} {
		t.Run(m.script+" "+m.old, func(t *testing.T) {
			at := scripts[m.script]
			shipped := *at
			defer func() { *at = shipped }()
			if n := strings.Count(shipped.Source(), m.old); n != 1 {
				t.Fatalf("stands there %d times", n)
			}
			*at = redisconn.NewScript(m.script, strings.Replace(shipped.Source(), m.old, m.new, 1))
			s := &moveTale{ctx: t.Context(), client: client}
			if s.tell(); len(s.wrong) == 0 {
				t.Error("not caught")
			}
		})
	}
}
