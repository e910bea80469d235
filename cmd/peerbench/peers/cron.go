package peers

import (
	"context"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// startCron starts robfig/cron with no lock and no Redis: the floor that the machine and the Go
// runtime set.
func startCron(_ context.Context, cfg Config) (Stop, error) {
	return nil, runCron(cfg, func(int) bool { return true })
}

// runCron calls each job at each second, and notes its start where may agrees.
func runCron(cfg Config, may func(job int) bool) error {
	schedule, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(everySecond)
	if err != nil {
		return err
	}
	runner := cron.New()
	for i := range cfg.Jobs {
		told := &teller{schedule: schedule}
		runner.Schedule(told, cron.FuncJob(func() {
			tick := told.tick()
			if may(i) {
				cfg.Note(i, tick)
			}
		}))
	}
	runner.Start()
	return nil
}

// teller is a schedule that remembers which ticks the runner computed, in order, because
// robfig/cron does not pass a job its tick. The runner computes the next tick before it can call
// the job for it. Only the measurement needs teller: the decision whether a job runs is left as
// users of the library have it.
type teller struct {
	schedule cron.Schedule

	mu    sync.Mutex
	asked []time.Time
}

// Next is called by the runner.
func (t *teller) Next(now time.Time) time.Time {
	next := t.schedule.Next(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = append(t.asked, next)
	return next
}

// tick returns the tick of the caller: the earliest that no call has taken.
func (t *teller) tick() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.asked[0]
	t.asked = t.asked[1:]
	return first
}
