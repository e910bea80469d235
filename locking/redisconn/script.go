package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script that is called by its digest. Make one per script, at package level. It is safe for
// concurrent use.
type Script struct {
	name string
	src  string
	run  *redis.Script
}

// NewScript returns a script with a text. The name is for messages.
func NewScript(name, src string) *Script {
	return &Script{name: name, src: src, run: redis.NewScript(src)}
}

// Name returns the name given to NewScript.
func (s *Script) Name() string { return s.name }

// Source returns the text given to NewScript.
func (s *Script) Source() string { return s.src }

// Hash returns the digest by which Redis keeps the script: SHA-1 of the text, in hex.
func (s *Script) Hash() string { return s.run.Hash() }

// Run calls the script by its digest, and with its text when the server lacks the script; nothing
// was run then. In a pipeline use Queue.
func (s *Script) Run(ctx context.Context, client redis.Scripter, keys []string, args ...any) *redis.Cmd {
	return s.run.Run(ctx, client, keys, args...)
}

// Queue adds a call by digest to a pipeline. When its reply is UnknownScript, repeat it with QueueSource.
func (s *Script) Queue(ctx context.Context, pipe redis.Pipeliner, keys []string, args ...any) *redis.Cmd {
	return s.run.EvalSha(ctx, pipe, keys, args...)
}

// QueueSource adds a call with the whole text to a pipeline.
func (s *Script) QueueSource(ctx context.Context, pipe redis.Pipeliner, keys []string, args ...any) *redis.Cmd {
	return s.run.Eval(ctx, pipe, keys, args...)
}

// UnknownScript reports whether err is the reply of a server that lacks the script, as after a
// restart, a failover or SCRIPT FLUSH.
func UnknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}
