package metrics

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/ops"
)

const (
	// readEvery is the shortest time between two reads of last successes, and readTimeout bounds one.
	readEvery   = 5 * time.Second
	readTimeout = 10 * time.Second
	// readAgain is how often the last successes of all jobs are read: the node that recorded one
	// may be gone.
	readAgain = 10 * time.Minute
	// readMax bounds the jobs of one read.
	readMax = 1000
)

// read has the last success of a job read from the ledger. The caller holds mu.
func (s *jobSeries) read(name string) {
	s.unread[name] = true
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// readAll has the last success of every job read from the ledger.
func (s *jobSeries) readAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names {
		s.read(name)
	}
}

// Run reads from the ledger when jobs last succeeded, until ctx ends: of all jobs at the start and
// every ten minutes, because other processes ran them, and of sharded jobs whenever a shard has
// succeeded. Failed reads are repeated. Run always returns nil.
func (c *Collector) Run(ctx context.Context, client *ops.Client) error {
	again := time.NewTicker(readAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			c.jobs.readAll()
			continue
		case <-c.jobs.changed:
		}
		c.jobs.readSome(ctx, client)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(readEvery):
		}
	}
}

// readSome reads last successes.
func (s *jobSeries) readSome(ctx context.Context, client *ops.Client) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s.mu.Lock()
	var names []string
	for name := range s.unread {
		if len(names) < readMax {
			names = append(names, name)
			delete(s.unread, name)
		}
	}
	s.mu.Unlock()
	at, err := client.LastSuccess(ctx, names...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		j, when := s.by[name], at[name]
		switch {
		case j == nil:
		case !when.IsZero():
			j.succeeded(when)
		case err != nil:
			s.read(name)
		}
	}
	if len(s.unread) > 0 {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}
