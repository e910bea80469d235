package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script that Redis keeps by its digest. Make one per script,
// at package level; it is safe for concurrent use.
type Script struct {
	name string
	src  string
	run  *redis.Script
}

// NewScript returns the script with the given text. The name is for messages.
func NewScript(name, src string) *Script {
	return &Script{name: name, src: src, run: redis.NewScript(src)}
}

// Name returns the name given to NewScript.
func (s *Script) Name() string { return s.name }

// Source returns the text given to NewScript.
func (s *Script) Source() string { return s.src }

// Hash returns the digest by which Redis keeps the script: SHA-1 of the text, in hex.
func (s *Script) Hash() string { return s.run.Hash() }

// Run calls the script by its digest, and with its whole text, once, when the
// server answers that it does not know it. That answer means that nothing was
// run, so the second call repeats nothing. In a pipeline use Queue instead.
func (s *Script) Run(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd {
	return s.run.Run(ctx, client, keys, args...)
}

// Queue puts a call by digest into a pipeline. When the reply is
// UnknownScript, queue it again with QueueSource.
func (s *Script) Queue(ctx context.Context, pipe redis.Pipeliner, keys []string, args ...any) *redis.Cmd {
	return s.run.EvalSha(ctx, pipe, keys, args...)
}

// QueueSource puts a call with the whole text into a pipeline.
func (s *Script) QueueSource(ctx context.Context, pipe redis.Pipeliner, keys []string, args ...any) *redis.Cmd {
	return s.run.Eval(ctx, pipe, keys, args...)
}

// UnknownScript reports whether err is the reply to a digest that the server
// does not know: after a restart, a failover or SCRIPT FLUSH.
func UnknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}
