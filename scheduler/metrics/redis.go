package metrics

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
)

// callBuckets are the classic buckets of Redis calls. A node gives up on one after a second.
var callBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}

// verbsMax bounds the verbs that have series of their own; the program may use its client for more.
const verbsMax = 100

// Verbs of calls without a name of their own.
const (
	verbScript   = "script"   // a script that is not the scheduler's
	verbPipeline = "pipeline" // a pipeline of several verbs
	verbOther    = "other"    // one verb too many
)

// scriptNames are the names of the scheduler's scripts, by digest.
var scriptNames = sync.OnceValue(func() map[string]string {
	names := make(map[string]string)
	for _, s := range ledger.Scripts() {
		names[s.Hash()] = s.Name()
	}
	for name, s := range roster.Scripts() {
		names[s.Hash()] = name
	}
	return names
})

// redisSeries are the durations of Redis calls.
type redisSeries struct {
	calls *prometheus.HistogramVec

	mu sync.RWMutex
	by map[string]prometheus.Histogram // by verb
}

func newRedisSeries(labels prometheus.Labels) *redisSeries {
	return &redisSeries{calls: redisCall.histograms(labels, true, callBuckets...), by: make(map[string]prometheus.Histogram)}
}

// observe notes how long a call took.
func (r *redisSeries) observe(verb string, took time.Duration) {
	r.mu.RLock()
	h := r.by[verb]
	r.mu.RUnlock()
	if h == nil {
		h = r.add(verb)
	}
	h.Observe(took.Seconds())
}

// add gives a verb its series.
func (r *redisSeries) add(verb string) prometheus.Histogram {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.by) >= verbsMax && r.by[verb] == nil {
		verb = verbOther
	}
	if r.by[verb] == nil {
		r.by[verb] = r.calls.WithLabelValues(verb).(prometheus.Histogram)
	}
	return r.by[verb]
}

// verbOf is the name of a script, or of a command.
func verbOf(cmd redis.Cmder) string {
	verb := cmd.Name()
	if verb != "evalsha" && verb != "eval" {
		return verb
	}
	var digest string
	if args := cmd.Args(); len(args) > 1 {
		digest, _ = args[1].(string)
	}
	if verb == "eval" { // sent with its text, because the server did not know its digest
		digest = redis.NewScript(digest).Hash()
	}
	return cmp.Or(scriptNames()[digest], verbScript)
}

// RedisHook returns a hook that measures the calls of a client: AddHook of go-redis takes it. A
// client is measured by one collector, once.
func (c *Collector) RedisHook() redis.Hook { return redisHook{c.redis} }

type redisHook struct{ series *redisSeries }

// DialHook measures nothing.
func (redisHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook measures a call.
func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmd)
		h.series.observe(verbOf(cmd), time.Since(begun))
		return err
	}
}

// ProcessPipelineHook measures a pipeline as one call. It has the verb of its commands, if that is
// one.
func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmds)
		took := time.Since(begun)
		verb := ""
		for _, cmd := range cmds {
			switch of := verbOf(cmd); {
			case of == verb, of == "multi", of == "exec": // a transaction's frame
			case verb == "":
				verb = of
			default:
				verb = verbPipeline
			}
		}
		h.series.observe(verb, took)
		return err
	}
}
