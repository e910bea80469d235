//go:build unix

package main

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// stalled is a job that nothing claims though nodes live.
const stalled judge.Kind = "STALL"

// claimsWithin is how soon after an address has settled each job runs again.
const claimsWithin = 10 * time.Second

// flips are for how long the address leads to the second server, one after another; short ones in a row leave nodes no time to look.
var flips = [][]time.Duration{
	{150 * time.Millisecond}, {500 * time.Millisecond}, {time.Second}, {2 * time.Second},
	{300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond},
}

func flipSettings(r *rehearsal) settings {
	s := usual(r)
	s.flips = true
	return s
}

// flip has the address of Redis lead to a replica, which becomes the master, and back again before the nodes may have noticed. What
// either has acknowledged and not passed on is lost.
func flip(ctx context.Context, r *rehearsal, s *stage) {
	s.startAll(ctx, r.nodes, nil)
	s.check(waitUntil(ctx, s.from.Add(3*time.Second)))
	chosen := flips
	if r.short {
		chosen = [][]time.Duration{flips[0], flips[len(flips)-1]}
	}
	for _, times := range chosen {
		s.amid(ctx)
		fault := time.Now()
		for _, d := range times {
			s.pass(ctx, s.redis, s.second)
			s.check(wait(ctx, d))
			s.pass(ctx, s.second, s.redis)
			s.check(wait(ctx, d))
		}
		back := time.Now()
		s.say("the address led to the other server %d times for %s, until %s", len(times), times[0], stamp(back))
		s.faults = append(s.faults, judge.Disturbance{Span: judge.Span{From: fault.Add(-lossBefore), Until: back}, What: "flip", Lossy: true, Loses: true})
		s.check(waitUntil(ctx, back.Add(claimsWithin)))
		s.claimAgain(back)
	}
	s.check(wait(ctx, s.settle()))
	s.finish(ctx)
	s.forgotten(s.faults[0].Until)
}

// pass makes a replica the master, and the master its replica.
func (s *stage) pass(ctx context.Context, from, to *redistest.Server) {
	order := func(server *redistest.Server, host, port string) {
		client := redis.NewClient(redistest.ClientOptions(server.Addr()))
		defer client.Close()
		s.check(client.ReplicaOf(ctx, host, port).Err())
	}
	order(to, "no", "one")
	host, port, err := net.SplitHostPort(to.Addr())
	s.check(err)
	order(from, host, port)
	s.address.point(to.Addr())
}

// claimAgain accuses the jobs of which no run has started since an instant.
func (s *stage) claimAgain(since time.Time) {
	lines, _, err := readSink(s.sink())
	s.check(err)
	started := map[string]time.Duration{}
	for _, l := range starts(lines) {
		if d := l.at.Sub(since); d > 0 && started[l.job] == 0 {
			started[l.job] = d
		}
	}
	var latest time.Duration
	for _, j := range s.jobs {
		d, ran := started[j.name]
		if !ran {
			s.accuse(stalled, j.name, "nothing of it has started within %s after the address was back, at %s", claimsWithin, stamp(since))
		}
		latest = max(latest, d)
	}
	s.note("each job ran again within %s", short(latest))
}
