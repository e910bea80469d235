package peers

import (
	"context"
	"time"

	redislock "github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"
)

// startGocron starts gocron with the distributed lock of its README: a try each, 8 s of expiry, the
// job's name as the key. The lock is given back when the run ends; gocron passes the lock no tick
// that would distinguish it from the next.
//
// Jobs do not receive their tick: it is the second in which they are called. A run that is more
// than a second late counts as one of the next tick, in its favour.
func startGocron(_ context.Context, cfg Config) (Stop, error) {
	client := redis.NewClient(&redis.Options{Addr: cfg.Addr})
	locker, err := redislock.NewRedisLocker(client, redislock.WithTries(1))
	if err != nil {
		return nil, err
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return nil, err
	}
	for i := range cfg.Jobs {
		task := gocron.NewTask(func() { cfg.Note(i, time.Now().Truncate(time.Second)) })
		if _, err := s.NewJob(gocron.CronJob(everySecond, true), task, gocron.WithName(jobName(i))); err != nil {
			return nil, err
		}
	}
	s.Start()
	return nil, nil
}
