package ledger

import (
	"context"
	"encoding/json"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// call runs a rarely used script. args is a struct, which lib/args.lua reads as JSON; bytes go
// beside it. The keys belong to a tag and a job, see namedKeys.
func (s *script) call(ctx context.Context, client redis.Scripter, tag, job string, args any, bytes ...any) *redis.Cmd {
	return s.Run(ctx, client, s.in(tag, job), append([]any{encoded(args)}, bytes...)...)
}

// encoded is a script's arguments in JSON.
func encoded(args any) string {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err) // texts, numbers and flags are always spelt
	}
	return string(text)
}

// clocked are the arguments of a script that refuses a caller with a wrong idea of Redis' time, or
// that keeps the times it stores near to that idea.
type clocked struct {
	Now  int64 `json:"now"`  // ms; 0 for no idea
	Skew int64 `json:"skew"` // tolerated difference, ms
}

func (l *Ledger) clocked(now int64) clocked { return clocked{now, l.cfg.MaxSkew.Milliseconds()} }

// timed are the arguments of a script that keeps the times it stores near to the caller's idea of
// Redis' time, see Believing.
func (l *Ledger) timed(ctx context.Context) clocked { return l.clocked(l.believed(ctx)) }

// retained are the arguments of a script that writes a history.
type retained struct {
	Keep    int   `json:"keep"`     // rows
	KeepFor int64 `json:"keep_for"` // age, ms
}

func (l *Ledger) retained() retained { return retained{l.cfg.Keep, l.cfg.KeepFor.Milliseconds()} }

// evaluate calls a script as redisconn.Script's Run does, without an allocation for each key and
// argument.
func evaluate(ctx context.Context, client redis.UniversalClient, s *script, keys, args []string) *redis.Cmd {
	cmd := evaluation(ctx, "evalsha", s.Hash(), keys, args)
	_ = client.Process(ctx, cmd) // the command has the error
	if redisconn.UnknownScript(cmd.Err()) {
		cmd = evaluation(ctx, "eval", s.Source(), keys, args)
		_ = client.Process(ctx, cmd) // as above
	}
	return cmd
}

func evaluation(ctx context.Context, name, script string, keys, args []string) *redis.Cmd {
	all := append(make([]any, 0, 3+len(keys)+len(args)), name, script, len(keys))
	cmd := redis.NewCmd(ctx, appendPlaces(appendPlaces(all, keys), args)...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// appendPlaces appends pointers to strings: a string itself would be copied to become an any.
func appendPlaces(all []any, list []string) []any {
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// spelt caches how a number is spelt, for lists that repeat it.
type spelt struct {
	n    int64
	text string
}

// of is how a number is spelt.
func (s *spelt) of(n int64) string {
	if s.text == "" || n != s.n {
		s.n, s.text = n, ms(n)
	}
	return s.text
}
