//go:build unix

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

const (
	// laterMost is how much later 99 in 100 runs of other masters' jobs may start during a trouble.
	laterMost = 20 * time.Millisecond
	// calmFor is the time without a fault before each trouble; the starts in it are the standard of
	// comparison.
	calmFor = 5 * time.Second
	// troubleFor is for how long a master is full, and how long after the move of a slot starts are
	// measured.
	troubleFor = 5 * time.Second
)

// delayed is a job that started later because of a master that it has nothing to do with.
const delayed judge.Kind = "DELAYED"

func mastersSettings(r *rehearsal) settings {
	s := churnSettings(r)
	s.sharded = true
	// By default Redis refuses every request from the loss of a master until a replica has taken
	// its place.
	s.clusterArgs = []string{"--cluster-require-full-coverage", "no"}
	return s
}

// trouble is a fault of one master of a Cluster; begin returns when it is over.
type trouble struct {
	what  string
	loses bool // writes that it had acknowledged
	begin func(ctx context.Context, s *stage, key string, master *redistest.Server)
}

var troubles = []trouble{
	{"a slot moves", false, func(ctx context.Context, s *stage, key string, master *redistest.Server) {
		_, other := s.partition(ctx, master)
		s.check(s.shards.MoveSlot(ctx, key, other))
		s.check(wait(ctx, troubleFor))
	}},
	{"full", false, func(ctx context.Context, s *stage, _ string, master *redistest.Server) {
		client := redis.NewClient(redistest.ClientOptions(master.Addr()))
		defer client.Close()
		s.check(client.ConfigSet(ctx, "maxmemory", "1").Err())
		s.check(wait(ctx, troubleFor))
		s.check(client.ConfigSet(ctx, "maxmemory", "0").Err())
	}},
	{"SIGSTOP", true, func(ctx context.Context, s *stage, key string, master *redistest.Server) {
		s.check(master.Pause())
		_, err := s.shards.Promoted(ctx, key, master)
		s.check(err)
		s.check(wait(ctx, undead))
		s.check(master.Resume())
		s.check(s.shards.Demoted(ctx, master))
	}},
	{"SIGKILL", true, func(ctx context.Context, s *stage, key string, master *redistest.Server) {
		s.check(s.shards.Part(ctx, master)) // writes acknowledged from now on are lost
		s.check(wait(ctx, lag))
		s.check(master.Kill())
		_, err := s.shards.Promoted(ctx, key, master)
		s.check(err)
	}},
}

// masters puts one master of a Cluster after another under the faults of masters. Jobs at the other
// masters start no later for it.
func masters(ctx context.Context, _ *rehearsal, s *stage) {
	s.startAll(ctx, nodes)
	s.check(waitUntil(ctx, s.from.Add(2*time.Second)))
	type outcome struct {
		trouble
		window
		elsewhere map[string]bool
	}
	var all []outcome
	for _, t := range troubles {
		s.check(wait(ctx, calmFor))
		key, master := s.partition(ctx, nil)
		elsewhere := s.elsewhere(ctx, master)
		s.amid(ctx)
		began := time.Now()
		s.say("%s: the master of %d of %d jobs, at %s", t.what, len(s.jobs)-len(elsewhere), len(s.jobs), stamp(began))
		t.begin(ctx, s, key, master)
		over := time.Now()
		d := judge.Disturbance{Span: judge.Span{From: began, Until: over}, What: t.what, Lossy: t.loses, Loses: t.loses}
		if t.loses {
			d.From = began.Add(-lossBefore)
		}
		s.faults = append(s.faults, d)
		all = append(all, outcome{t, window{began, over}, elsewhere})
		s.check(wait(ctx, s.settle()))
	}
	s.finish(ctx)
	for _, o := range all {
		s.compare(o.what, o.window, o.elsewhere)
	}
}

// partition returns a key of a partition at a master that is neither the control record's, whose
// clock the nodes read, nor the given one.
func (s *stage) partition(ctx context.Context, but *redistest.Server) (key string, master *redistest.Server) {
	home, err := s.shards.Master(ctx, "{"+namespace+"}:control")
	s.check(err)
	for i := 0; ; i++ {
		key = fmt.Sprintf("{%s:%d}:jobs", namespace, i)
		master, err = s.shards.Master(ctx, key)
		s.check(err)
		if master != home && master != but {
			return key, master
		}
	}
}

// elsewhere are the jobs of partitions that a master does not have.
func (s *stage) elsewhere(ctx context.Context, master *redistest.Server) map[string]bool {
	client := redis.NewClusterClient(s.shards.Options()) // a client with the current slots
	defer client.Close()
	all := make(map[string]bool)
	for i := range partitions {
		key := fmt.Sprintf("{%s:%d}:jobs", namespace, i)
		at, err := client.MasterForKey(ctx, key)
		s.check(err)
		if at.Options().Addr == master.Addr() {
			continue
		}
		names, err := client.HKeys(ctx, key).Result()
		s.check(err)
		for _, name := range names {
			all[name] = true
		}
	}
	return all
}

// partitions is how many a new namespace has on a Cluster.
const partitions = 64

// compare accuses other masters' jobs that started later than before the trouble, or twice.
func (s *stage) compare(what string, w window, elsewhere map[string]bool) {
	type shard struct {
		job  string
		tick int64
	}
	ran := make(map[shard]int)
	among := func(from, to time.Time) []time.Duration {
		return lags(starts(s.lines), func(l line) bool { return elsewhere[l.job] && !l.tick.Before(from) && l.tick.Before(to) })
	}
	for _, l := range starts(s.lines) {
		if elsewhere[l.job] && w.holds(l.tick) {
			ran[shard{l.job, l.tick.UnixNano()}]++
		}
	}
	for at, times := range ran {
		if times > 1 {
			s.accuse(judge.KindDouble, at.job, "%s: its tick %s started %d times, and its master was another one", what, stamp(time.Unix(0, at.tick)), times)
		}
	}
	before, amid := among(w.from.Add(-calmFor), w.from), among(w.from, w.to)
	s.note("%s: %d runs at other masters in %s; late p50 %s, p99 %s, max %s; in the %s before %s, %s, %s", what, len(amid), short(w.to.Sub(w.from)),
		tenths(quantile(amid, 0.5)), tenths(quantile(amid, 0.99)), tenths(quantile(amid, 1)),
		short(calmFor), tenths(quantile(before, 0.5)), tenths(quantile(before, 0.99)), tenths(quantile(before, 1)))
	if len(amid) < len(elsewhere) || len(before) < len(elsewhere) {
		s.accuse(undone, what, "%d runs before and %d amid it, of %d jobs elsewhere: too few to compare", len(before), len(amid), len(elsewhere))
	}
	for _, q := range []float64{0.5, 0.99} {
		if later := quantile(amid, q) - quantile(before, q); later > laterMost {
			s.accuse(delayed, what, "at other masters, the p%.0f of the lag is %s more than before", 100*q, later)
		}
	}
}

// tenths is a short time for people, in ms.
func tenths(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
