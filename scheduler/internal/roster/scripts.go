package roster

import (
	_ "embed" // the scripts are files of their own
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

//go:embed beat.lua
var beatSrc string

//go:embed members.lua
var membersSrc string

//go:embed announce.lua
var announceSrc string

//go:embed drain.lua
var drainSrc string

var (
	beatScript     = redis.NewScript(redisconn.TokenLua + beatSrc)
	membersScript  = redis.NewScript(membersSrc)
	announceScript = redis.NewScript(announceSrc)
	drainScript    = redis.NewScript(drainSrc)
)

// Scripts are the roster's scripts by name, for tools that watch the wire.
func Scripts() map[string]*redis.Script {
	return map[string]*redis.Script{
		"roster_beat": beatScript, "roster_members": membersScript, "roster_announce": announceScript, "roster_drain": drainScript,
	}
}

// row is one record as a script returned it.
type row struct {
	id   string
	seen time.Time
	raw  string
}

// reply is the reply of beat.lua and members.lua.
type reply struct {
	nowMS  int64
	known  bool
	drain  string // as stored; '' for none
	epoch  int64
	source string
	rows   []row
}

// parseReply parses a script's answer. An error means that the script and this function do not
// match.
func parseReply(cmd *redis.Cmd) (reply, error) {
	items, err := cmd.Slice()
	if err != nil {
		return reply{}, err
	}
	if len(items) < 5 || len(items)%3 != 2 {
		return reply{}, fmt.Errorf("the script answered %d values; want 5 and 3 for each member", len(items))
	}
	now, ok1 := items[0].(int64)
	known, ok2 := items[1].(int64)
	drain, ok3 := items[2].(string)
	epoch, ok4 := items[3].(string)
	source, ok5 := items[4].(string)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
		return reply{}, errors.New("the script's answer does not begin with two numbers and three texts")
	}
	out := reply{nowMS: now, known: known == 1, drain: drain, source: source, rows: make([]row, 0, len(items)/3)}
	out.epoch, _ = strconv.ParseInt(epoch, 10, 64) // an unreadable one counts as 0: callers that act on it read the record itself
	for i := 5; i < len(items); i += 3 {
		r, err := parseRow(items[i], items[i+1], items[i+2])
		if err != nil {
			return reply{}, err
		}
		out.rows = append(out.rows, r)
	}
	return out, nil
}

func parseRow(id, seen, raw any) (row, error) {
	idText, ok1 := id.(string)
	seenText, ok2 := seen.(string)
	rawText, ok3 := raw.(string)
	if !ok1 || !ok2 || !ok3 {
		return row{}, fmt.Errorf("the script answered %T, %T, %T for a member; want three texts", id, seen, raw)
	}
	ms, err := strconv.ParseFloat(seenText, 64)
	if err != nil {
		return row{}, fmt.Errorf("the script answered %q as a member's time: %w", seenText, err)
	}
	// A score that was written by hand may be infinite; years 1970 to 5138 are kept.
	ms = min(max(ms, 0), 1e14)
	return row{idText, time.UnixMilli(int64(ms)).UTC(), rawText}, nil
}
