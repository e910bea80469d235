package redisfence

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

// DefaultNamespace is the namespace of a Config that names none.
const DefaultNamespace = "escapement"

// Config sets a Guard. Its zero value is useful.
type Config struct {
	Namespace string // keeps installations in one Redis apart, for Check; default "escapement"

	// Keep is how long a fence is remembered after the last token it accepted,
	// rounded up to milliseconds. A write later than that is accepted whatever its
	// token. 0: for ever, until you delete the key.
	Keep time.Duration
}

// Guard compares tokens in Redis, in one script with the effect. All methods may
// be called from many goroutines, and repeated after a lost reply. Their errors
// are a *fence.StaleError; one that wraps locking.ErrUnreachable when it is not
// known whether the effect took place; a *fence.InputError.
type Guard struct {
	client    redis.UniversalClient
	namespace string
	keep      int64 // milliseconds
	refused   error // an *fence.InputError: what is wrong with the client or the Config
}

var _ fence.Store = (*Guard)(nil)

// New returns a Guard. A client with the wrong settings (see redisconn.Check)
// makes every call fail with the reason. The client stays the caller's to close.
func New(client redis.UniversalClient, cfg Config) *Guard {
	g := &Guard{client: client, namespace: cfg.Namespace, keep: lockredis.Millis(cfg.Keep)}
	if g.namespace == "" {
		g.namespace = DefaultNamespace
	}
	if err := redisconn.Check(client); err != nil {
		g.refused = &fence.InputError{Field: "client", Why: "cannot be used: " + err.Error()}
	} else if cfg.Keep < 0 {
		g.refused = &fence.InputError{Field: "Config.Keep", Why: fmt.Sprintf("is %s; use 0 to keep fences for ever", cfg.Keep)}
	} else if strings.ContainsAny(cfg.Namespace, "{}") {
		g.refused = &fence.InputError{Field: "Config.Namespace", Why: fmt.Sprintf("is %q; with braces a fence could be one of another namespace: use letters, digits and dashes", cfg.Namespace)}
	}
	return g
}

// Check is described at fence.Store. The effect is not in the script, so this
// only says who came last: see package fence on comparing where the effect
// happens.
func (g *Guard) Check(ctx context.Context, name string, token locking.Token) error {
	_, err := g.run(ctx, checkScript, name, g.namespace+":fence:{"+name+"}", token, nil, nil)
	return err
}

// Set writes value to key, and the token beside it, or neither. ttl is when the
// value expires, rounded up to milliseconds; 0: never. The fence does not expire
// with it.
func (g *Guard) Set(ctx context.Context, key, value string, token locking.Token, ttl time.Duration) error {
	if ttl < 0 {
		return &fence.InputError{Field: "ttl", Why: fmt.Sprintf("is %s; use 0 for a value that does not expire", ttl)}
	}
	beside, err := Beside(key)
	if err != nil {
		return err
	}
	_, err = g.run(ctx, setScript, key, beside, token, []string{key}, []any{value, lockredis.Millis(ttl)})
	return err
}

// Run runs a script of yours if the token is current for the fence that
// fenceKey names, mostly what Beside returns, and returns the script's reply, nil
// for Lua's nil.
func (g *Guard) Run(ctx context.Context, s *Script, fenceKey string, token locking.Token, keys []string, args ...any) (any, error) {
	return g.run(ctx, s, fenceKey, fenceKey, token, keys, args)
}

func (g *Guard) run(ctx context.Context, s *Script, name, fenceKey string, token locking.Token, keys []string, args []any) (any, error) {
	if err := fence.Valid(name, token); err != nil {
		return nil, err
	}
	if g.refused != nil {
		return nil, g.refused
	}
	op := fmt.Sprintf("fence %q: %s with token %d at redis %s", name, s.script.Name(), token, redisconn.Addr(g.client))
	keys = append([]string{fenceKey}, keys...)
	args = append([]any{token, g.keep}, args...)
	reply, err := s.script.Run(ctx, g.client, keys, args...).Slice()
	if err != nil {
		return nil, redisconn.Classify(op, err)
	}
	return read(op, name, token, reply)
}

// Codes of fenced.lua.
const (
	codeStale    = 0
	codeAccepted = 1
	codeForeign  = 2
)

func read(op, name string, token locking.Token, reply []any) (any, error) {
	var code, answer any
	if len(reply) > 0 {
		code = reply[0]
	}
	if len(reply) > 1 {
		answer = reply[1]
	}
	switch code {
	case int64(codeAccepted):
		if err, ok := answer.(error); ok {
			return nil, redisconn.Classify(op, err)
		}
		return answer, nil
	case int64(codeStale):
		highest, err := fence.ParseToken(fmt.Sprint(answer))
		if err != nil {
			return nil, fmt.Errorf("%s: refused: %w", op, err)
		}
		return nil, &fence.StaleError{Fence: name, Token: token, Max: highest}
	case int64(codeForeign):
		return nil, fmt.Errorf("%s: the key of the fence holds %.40q, which is no token; is it used by something else?", op, answer)
	}
	return nil, fmt.Errorf("%s: unexpected reply %.80q", op, fmt.Sprint(reply))
}

// Suffixes of what Beside returns. Neither ends in the other, so no two keys
// have one fence: a and {a} would.
const (
	taggedSuffix = ":fence"
	plainSuffix  = ":key-fence"
)

// Beside returns the key of the fence of a data key, in the same slot of a
// Cluster, and another one for each key. Keys with one hash tag may share a fence: give Run the key of one.
// The error is a *fence.InputError, for a key that leaves no room for a tag.
func Beside(key string) (string, error) {
	switch {
	case key == "":
		return "", &fence.InputError{Field: "key", Why: "is empty"}
	case tagged(key):
		return key + taggedSuffix, nil
	case strings.Contains(key, "}"):
		return "", &fence.InputError{Field: "key", Why: fmt.Sprintf("%.80q has a '}' and no hash tag, so no other key shares its slot; give it a tag, as in orders:{42}", key)}
	}
	return "{" + key + "}" + plainSuffix, nil
}

// tagged reports whether Redis hashes only a part of the key: what stands
// between the first '{' and the first '}' after it, when that is not empty.
func tagged(key string) bool {
	_, rest, _ := strings.Cut(key, "{")
	inside, _, closed := strings.Cut(rest, "}")
	return closed && inside != ""
}
