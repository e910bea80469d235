package peers

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/hibiken/asynq"
)

// checkEvery is how often an idle worker looks for tasks. asynq's default is a
// second, of which a tick would wait for half: this is in favour of its lag, and costs it calls.
const checkEvery = 10 * time.Millisecond

// startAsynq starts workers on each node, with slots for all jobs. Its scheduler
// is on the first node only, as its documentation wants: each further one would
// enqueue each tick once more.
//
// The schedule is @every 1s, which is on whole seconds, because its cron has no
// seconds. A task's payload is the same for each tick; the tick is written into
// it when the scheduler enqueues it, in the second in which that begins.
func startAsynq(_ context.Context, cfg Config) (Stop, error) {
	redis := asynq.RedisClientOpt{Addr: cfg.Addr}
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency:       max(10, cfg.Jobs),
		TaskCheckInterval: checkEvery,
		LogLevel:          asynq.ErrorLevel,
	})
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		job, tick := decode(t.Payload())
		cfg.Note(job, tick)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	if cfg.Index > 0 {
		return nil, nil
	}
	s := asynq.NewScheduler(redis, &asynq.SchedulerOpts{
		LogLevel:       asynq.ErrorLevel,
		PreEnqueueFunc: func(t *asynq.Task, _ []asynq.Option) { encodeTick(t.Payload(), time.Now()) },
	})
	for i := range cfg.Jobs {
		if _, err := s.Register("@every 1s", asynq.NewTask("job", encodeJob(i))); err != nil {
			return nil, err
		}
	}
	return nil, s.Start()
}

// A payload is the job and the tick's second.

func encodeJob(job int) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(job)), 0)
}

func encodeTick(payload []byte, at time.Time) {
	binary.BigEndian.PutUint64(payload[8:], uint64(at.Unix()))
}

func decode(payload []byte) (job int, tick time.Time) {
	return int(binary.BigEndian.Uint64(payload)), time.Unix(int64(binary.BigEndian.Uint64(payload[8:])), 0)
}
