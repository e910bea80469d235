//go:build unix

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

const (
	// lossBefore is how old the oldest write may be that is lost with the master.
	lossBefore = 2 * time.Second
	// lag is how far behind the replicas are at least when the master is killed.
	lag = 700 * time.Millisecond
	// undead is for how long a frozen master has a successor when it is continued.
	undead = 1500 * time.Millisecond
	// noSooner is a time within which no replica is promoted: the sentinels wait as long before they suspect anything.
	noSooner = time.Second
)

func failoverSettings(r *rehearsal) settings {
	s := churnSettings(r)
	s.sentinel, s.confirm = true, r.confirm
	return s
}

func shardSettings(r *rehearsal) settings {
	s := churnSettings(r)
	s.sharded = true
	return s
}

// throne is what has a master, and another when that is gone.
type throne interface {
	Master() (*redistest.Server, error)
	Promoted(ctx context.Context, old *redistest.Server) (*redistest.Server, error)
	Demoted(ctx context.Context, old *redistest.Server) error
}

// failover kills the master amid a burst, when its replicas have not heard of it for a moment. What it had acknowledged
// and not passed on is lost.
func failover(ctx context.Context, r *rehearsal, s *stage) {
	s.overthrow(ctx, r, s.watch, "SIGKILL", func(old *redistest.Server) {
		s.check(s.watch.Part(ctx))
		s.behead(ctx, old)
	}, nil)
}

// behead kills the master amid a burst, when its replicas have been parted from it for a while.
func (s *stage) behead(ctx context.Context, master *redistest.Server) {
	s.check(wait(ctx, lag))
	if !s.confirm { // with it nothing begins that the replicas have not heard of
		s.amid(ctx)
	}
	s.check(master.Kill())
}

// shard does the same to one master of a Cluster, which is not the one whose clock the nodes read.
func shard(ctx context.Context, r *rehearsal, s *stage) {
	s.overthrow(ctx, r, s.partition(ctx), "SIGKILL", func(old *redistest.Server) {
		s.check(s.shards.Part(ctx, old))
		s.behead(ctx, old)
	}, nil)
}

// part is a partition of the namespace, at a Cluster.
type part struct {
	cluster *redistest.Cluster
	key     string
}

func (p part) Master() (*redistest.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return p.cluster.Master(ctx, p.key)
}

func (p part) Promoted(ctx context.Context, old *redistest.Server) (*redistest.Server, error) {
	return p.cluster.Promoted(ctx, p.key, old)
}

func (p part) Demoted(ctx context.Context, old *redistest.Server) error {
	return p.cluster.Demoted(ctx, old)
}

// partition is one at another master than that of the control record.
func (s *stage) partition(ctx context.Context) part {
	home, err := s.shards.Master(ctx, "{"+namespace+"}:control")
	s.check(err)
	for i := 0; ; i++ {
		p := part{s.shards, fmt.Sprintf("{%s:%d}:jobs", namespace, i)}
		master, err := p.Master()
		s.check(err)
		if master != home {
			return p
		}
	}
}

// zombie stops the master amid a burst and continues it when another one has taken its place. It still holds itself for
// the master then, and answers what was sent to it, until a sentinel tells it otherwise.
func zombie(ctx context.Context, r *rehearsal, s *stage) { s.suspend(ctx, r, s.watch) }

// hang does the same to one master of a Cluster, which is not the one whose clock the nodes read. The others tell it.
func hang(ctx context.Context, r *rehearsal, s *stage) { s.suspend(ctx, r, s.partition(ctx)) }

// suspend stops the master, and continues it when it has had a successor for a while.
func (s *stage) suspend(ctx context.Context, r *rehearsal, of throne) {
	pause := func(old *redistest.Server) { s.check(old.Pause()) }
	s.overthrow(ctx, r, of, "SIGSTOP", pause, func(old *redistest.Server) {
		s.check(wait(ctx, undead))
		s.check(old.Resume())
		back := time.Now()
		s.say("SIGCONT to the old master at %s", stamp(back))
		s.check(of.Demoted(ctx, old))
		s.note("the old master went on %s after its successor was there, and was a replica another %s later", short(undead), short(time.Since(back)))
	})
}

// overthrow does something to the master, and then something else when a replica has taken its place.
func (s *stage) overthrow(ctx context.Context, r *rehearsal, of throne, what string, strike, then func(*redistest.Server)) {
	s.startAll(ctx, r.nodes, nil)
	seconds := max(r.seconds, 24*time.Second)
	s.check(waitUntil(ctx, s.from.Add(seconds/4)))
	old, err := of.Master()
	s.check(err)
	s.amid(ctx)
	strike(old)
	fault := time.Now()
	s.say("%s to the master at %s", what, stamp(fault))
	_, err = of.Promoted(ctx, old)
	s.check(err)
	back := time.Now()
	s.note("%s to the master; another one was there %s later", what, short(back.Sub(fault)))
	if then != nil {
		then(old)
	}
	s.faults = append(s.faults, judge.Disturbance{Span: judge.Span{From: fault.Add(-lossBefore), Until: back}, What: "failover", Lossy: true, Loses: true})
	s.check(waitUntil(ctx, later(s.from.Add(seconds-time.Second), back.Add(s.settle()+4*time.Second))))
	s.finish(ctx)
	s.forgotten(fault)
}

// forgotten notes what became of the ticks around a fault.
func (s *stage) forgotten(fault time.Time) {
	recorded, unrecorded := s.books.started(), 0
	first, pairs := map[string]line{}, [][2]line(nil)
	for _, l := range starts(s.lines) {
		if _, known := recorded[l.run]; !known {
			unrecorded++
		}
		id := fmt.Sprint(l.job, l.tick, l.shard)
		if before, again := first[id]; again {
			pairs = append(pairs, [2]line{before, l})
		} else {
			first[id] = l
		}
	}
	s.note("first run %s after the fault; no node ended", short(noSooner+s.firstAfter(fault.Add(noSooner))))
	s.note("%d ticks ran twice, %d runs have no record, %d ticks neither ran nor are recorded", len(pairs), unrecorded, s.report.Verdicts[judge.Vanished])
	for i, p := range pairs {
		if i == shown {
			s.note("... and %d more", len(pairs)-shown)
			break
		}
		s.note("%s ran twice: due %s, started %s and %s after the fault", p[0].job,
			signed(p[0].tick.Sub(fault)), signed(p[0].at.Sub(fault)), signed(p[1].at.Sub(fault)))
	}
}

func signed(d time.Duration) string { return fmt.Sprintf("%+.3f s", d.Seconds()) }
