package catalog

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// handlersFor is how long a handler is known that no node declares any more.
const handlersFor = 30 * 24 * time.Hour

// DeclareHandlers notes that a node has handlers, each with the shape of its payloads, at an
// instant of Redis' clock, ms.
func DeclareHandlers(ctx context.Context, l *ledger.Ledger, shapes map[string]string, now int64) error {
	const doing = "declare handlers"
	key := ledger.NamespaceKeys(l.Config.Namespace).Handlers
	var known []redis.Z
	for name, shape := range shapes {
		if shape != "" {
			name += "|" + shape
		}
		known = append(known, redis.Z{Score: float64(now), Member: name})
	}
	err := redisconn.TxPipelined(ctx, l.Client, func(p redis.Pipeliner) error {
		if len(known) > 0 {
			p.ZAdd(ctx, key, known...)
		}
		p.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(now-handlersFor.Milliseconds(), 10))
		return nil
	})
	if err != nil {
		return l.Explain(ctx, doing, err)
	}
	return nil
}

// Handlers are the handlers that nodes have declared, each with the shape of its payloads that was
// declared last.
func Handlers(ctx context.Context, l *ledger.Ledger) (map[string]string, error) {
	const doing = "read handlers"
	members, err := l.Client.ZRange(ctx, ledger.NamespaceKeys(l.Config.Namespace).Handlers, 0, -1).Result() // the latest one last
	if err != nil {
		return nil, l.Explain(ctx, doing, err)
	}
	shapes := make(map[string]string, len(members))
	for _, m := range members {
		name, shape, _ := strings.Cut(m, "|")
		shapes[name] = shape
	}
	return shapes, nil
}
