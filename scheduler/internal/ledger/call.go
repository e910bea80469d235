package ledger

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// arguments are what a script is given.
type arguments interface{ appendTo(to []string) []string }

// list is arguments that nobody gave names.
type list []string

func (l list) appendTo(to []string) []string { return append(to, l...) }

// runScript calls a script by arguments that have names. For batches that matter there is evaluate.
func runScript(ctx context.Context, client redis.UniversalClient, s *redisconn.Script, keys []string, args arguments) *redis.Cmd {
	return s.Run(ctx, client, keys, asAny(args)...)
}

// asAny are arguments as Redis' client takes them.
func asAny(args arguments) []any {
	list := args.appendTo(nil)
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

// evaluate calls a script as redisconn.Script's Run does, without an allocation for each key and argument.
func evaluate(ctx context.Context, client redis.UniversalClient, s *redisconn.Script, keys, args []string) *redis.Cmd {
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

// appendPlaces appends strings by their places: a string itself would have to be copied to be an any.
func appendPlaces(all []any, list []string) []any {
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// appendHistories appends the keys of n jobs' histories, which lie in one piece of memory.
func appendHistories(keys []string, prefix string, n int, job func(int) string) []string {
	size := n * len(prefix)
	for i := range n {
		size += len(job(i))
	}
	var b strings.Builder
	b.Grow(size)
	for i := range n {
		at := b.Len()
		b.WriteString(prefix)
		b.WriteString(job(i))
		keys = append(keys, b.String()[at:])
	}
	return keys
}

// spelt is a number and how it is spelt, for lists in which the same one comes again and again.
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
