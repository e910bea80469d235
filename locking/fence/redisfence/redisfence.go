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

// defaultNamespace is the namespace of a Config without one.
const defaultNamespace = "escapement"

// Config holds the settings of a Guard. The zero value is useful.
type Config struct {
	Namespace string // separates installations in one Redis, for Check; no braces; default "escapement"

	// Keep is how long a fence lives after its last accepted token, rounded up to milliseconds. A later write is
	// accepted with any token. 0: until you delete the key.
	Keep time.Duration
}

// Guard compares tokens in Redis, in one script with the write. All methods may be called from many goroutines, and
// repeated after a lost reply. An error is a *fence.StaleError for a stale token, a *fence.InputError for a refused
// argument, and wraps locking.ErrUnreachable when the write may or may not have happened.
type Guard struct {
	client    redis.UniversalClient
	namespace string
	keep      int64 // milliseconds
	refused   error // a *fence.InputError for the client or the Config
}

var _ fence.Store = (*Guard)(nil)

// New returns a Guard in client's Redis. The caller closes the client. With a client that has wrong settings (see
// redisconn.Check), each call returns an error that names the option to set.
func New(client redis.UniversalClient, cfg Config) *Guard {
	g := &Guard{client: client, namespace: cfg.Namespace, keep: lockredis.Millis(cfg.Keep)}
	if g.namespace == "" {
		g.namespace = defaultNamespace
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

// Check implements fence.Store: it accepts the token for the fence called name and stores it, or returns a
// *fence.StaleError. A write that follows is not in the same step; use Set or Run for data in this Redis.
func (g *Guard) Check(ctx context.Context, name string, token locking.Token) error {
	_, err := g.run(ctx, checkScript, name, g.namespace+":fence:{"+name+"}", token, nil, nil)
	return err
}

// Set writes value to key if the token is current, and stores the token, in one step. ttl is the life of the value,
// rounded up to milliseconds; 0: it does not expire. The fence does not expire with it.
func (g *Guard) Set(ctx context.Context, key, value string, token locking.Token, ttl time.Duration) error {
	if ttl < 0 {
		return &fence.InputError{Field: "ttl", Why: fmt.Sprintf("is %s; use 0 for a value that does not expire", ttl)}
	}
	fenceKey, err := FenceKey(key)
	if err != nil {
		return err
	}
	_, err = g.run(ctx, setScript, key, fenceKey, token, []string{key}, []any{value, lockredis.Millis(ttl)})
	return err
}

// Run runs your script if the token is current for the fence at fenceKey, and stores the token, in one step. Mostly
// FenceKey returns fenceKey. The result is the script's reply; nil for Lua's nil.
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
	codeNoToken  = 2
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
	case int64(codeNoToken):
		return nil, fmt.Errorf("%s: the key of the fence holds %.40q, which is no token; check what else writes to it", op, answer)
	}
	return nil, fmt.Errorf("%s: unexpected reply %.80q", op, fmt.Sprint(reply))
}

// The suffixes of FenceKey. Neither ends in the other; else the keys a and {a} would share a fence.
const (
	taggedSuffix = ":fence"
	plainSuffix  = ":key-fence"
)

// FenceKey returns the key of the fence of a data key: another one for each key, in the same slot of a Cluster. For
// a fence that several keys with one hash tag share, give Run the FenceKey of one. The error is a *fence.InputError
// for a key that has a '}' and no hash tag.
func FenceKey(key string) (string, error) {
	switch {
	case key == "":
		return "", &fence.InputError{Field: "key", Why: "is empty; give the key of the data"}
	case tagged(key):
		return key + taggedSuffix, nil
	case strings.Contains(key, "}"):
		return "", &fence.InputError{Field: "key", Why: fmt.Sprintf("%.80q has a '}' and no hash tag, so no other key shares its slot; give it a tag, as in orders:{42}", key)}
	}
	return "{" + key + "}" + plainSuffix, nil
}

// tagged reports whether the key has a hash tag: a text between its first '{' and the next '}'.
func tagged(key string) bool {
	_, rest, _ := strings.Cut(key, "{")
	inside, _, closed := strings.Cut(rest, "}")
	return closed && inside != ""
}
