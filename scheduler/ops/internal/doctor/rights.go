package doctor

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name of a script that does not exist
	"encoding/hex"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// needed are the commands that nodes and tools send, as docs/operations.md grants them, with
// arguments that fit. KEY stands for a key of the namespace, CHANNEL for a channel. Commands that
// no transaction takes are left out: auth, hello, multi, exec and subscriptions.
const needed = `ping
info
time
scan 0
eval SCRIPT 0
evalsha SHA 0
wait 0 0
get KEY
set KEY v
del KEY
exists KEY
expire KEY 1
pexpire KEY 1
pttl KEY
hget KEY f
hset KEY f v
hsetnx KEY f v
hmget KEY f
hgetall KEY
hvals KEY
hkeys KEY
hlen KEY
hexists KEY f
hdel KEY f
hincrby KEY f 1
hscan KEY 0
zadd KEY 1 m
zrem KEY m
zcard KEY
zcount KEY 0 1
zscore KEY m
zrank KEY m
zrange KEY 0 1
zrangebyscore KEY 0 1
zrevrange KEY 0 1
zrevrangebyscore KEY 1 0
zremrangebyscore KEY 0 1
rpush KEY v
lrange KEY 0 1
lindex KEY 0
llen KEY
lset KEY 0 v
ltrim KEY 0 1
publish CHANNEL m`

// denied returns the needed rights that a server's user lacks, in the words of ACL SETUSER. It
// sends the commands in a transaction that is never carried out: Redis checks the rights to a
// command when it is queued. The transaction is spoilt first, and its connection closed in place of
// EXEC. A right that cannot be checked is not denied.
func denied(ctx context.Context, c redis.UniversalClient, namespace string) []string {
	of, is := c.(*redis.Client)
	if !is {
		return nil
	}
	options := *of.Options()
	options.PoolSize, options.MinIdleConns, options.MaxRetries = 1, 0, -1
	own := redis.NewClient(&options)
	defer own.Close()
	conn := own.Conn()
	defer conn.Close()
	if err := conn.Do(ctx, "multi").Err(); err != nil {
		return refusedBy(err, "+multi", "", "")
	}
	if conn.Do(ctx, "get").Err() == nil { // without a key: whatever is queued from here on can only be thrown away
		return nil
	}
	pipe := conn.Pipeline()
	var sent []*redis.Cmd
	var lacks, rights []string
	keys, channels := "~{"+namespace+"}:* ~{"+namespace+":*", "&"+namespace+":lock-call:* &{"+namespace+":lock:*"
	for line := range strings.Lines(needed) {
		words := strings.Fields(line)
		args := make([]any, len(words))
		for k, w := range words {
			args[k] = argument(w, namespace)
		}
		sent, rights = append(sent, pipe.Do(ctx, args...)), append(rights, "+"+words[0])
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for k, cmd := range sent {
		lacks = append(lacks, refusedBy(cmd.Err(), rights[k], keys, channels)...)
	}
	slices.Sort(lacks)
	return slices.Compact(lacks)
}

func argument(word, namespace string) any {
	switch word {
	case "KEY":
		return "{" + namespace + ":0}:doctor"
	case "CHANNEL":
		return namespace + ":lock-call:doctor"
	case "SCRIPT":
		return "return 0"
	case "SHA":
		sum := sha1.Sum([]byte("doctor")) //nolint:gosec // as above
		return hex.EncodeToString(sum[:])
	}
	return word
}

// refusedBy are the rights for want of which a command was refused.
func refusedBy(err error, command, keys, channels string) []string {
	if err == nil || !redis.IsPermissionError(err) {
		return nil
	}
	switch text := strings.ToLower(err.Error()); {
	case strings.Contains(text, "to run the"): // the command's name may contain key or channel
	case strings.Contains(text, "channel"):
		return strings.Fields(channels)
	case strings.Contains(text, "key"):
		return strings.Fields(keys)
	}
	return []string{command}
}
