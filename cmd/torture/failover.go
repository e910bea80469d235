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
	// noSooner is a time within which no replica is promoted: the sentinels wait as long before
	// they suspect the master.
	noSooner = time.Second
)

func failoverSettings(r *rehearsal) settings {
	s := churnSettings(r)
	s.sentinel, s.confirm = true, r.confirm
	return s
}

// failover kills the master amid a burst, a moment after its replicas were cut off from it. Writes
// that it had acknowledged and not passed on are lost.
func failover(ctx context.Context, r *rehearsal, s *stage) {
	s.loseMaster(ctx, r, "SIGKILL", func(old *redistest.Server) {
		s.check(s.watch.Part(ctx))
		s.check(wait(ctx, lag))
		if !s.confirm { // with confirm nothing begins before the replicas have it
			s.amid(ctx)
		}
		s.check(old.Kill())
	}, func(*redistest.Server) {})
}

// zombie stops the master amid a burst and continues it when another server has taken its place. It
// then still acts as the master, and answers the requests sent to it, until a sentinel demotes it.
func zombie(ctx context.Context, r *rehearsal, s *stage) {
	s.loseMaster(ctx, r, "SIGSTOP", func(old *redistest.Server) { s.check(old.Pause()) }, func(old *redistest.Server) {
		s.check(wait(ctx, undead))
		s.check(old.Resume())
		back := time.Now()
		s.say("SIGCONT to the old master at %s", stamp(back))
		s.check(s.watch.Demoted(ctx, old))
		s.note("the old master went on %s after its successor was there, and was a replica another %s later", short(undead), short(time.Since(back)))
	})
}

// loseMaster strikes the master, and calls then when a replica has taken its place.
func (s *stage) loseMaster(ctx context.Context, r *rehearsal, what string, strike, then func(*redistest.Server)) {
	s.startAll(ctx, nodes)
	seconds := max(r.seconds, 24*time.Second)
	s.check(waitUntil(ctx, s.from.Add(seconds/4)))
	old, err := s.watch.Master()
	s.check(err)
	s.amid(ctx)
	strike(old)
	fault := time.Now()
	s.say("%s to the master at %s", what, stamp(fault))
	_, err = s.watch.Promoted(ctx, old)
	s.check(err)
	back := time.Now()
	s.note("%s to the master; another one was there %s later", what, short(back.Sub(fault)))
	then(old)
	s.faults = append(s.faults, judge.Disturbance{Span: judge.Span{From: fault.Add(-lossBefore), Until: back}, What: "failover", Lossy: true, Loses: true})
	s.check(waitUntil(ctx, later(s.from.Add(seconds-time.Second), back.Add(s.settle()+4*time.Second))))
	s.finish(ctx)
	s.forgotten(fault)
}

// forgotten notes the results of the ticks around a fault, and returns how many ran twice.
func (s *stage) forgotten(fault time.Time) (twice int) {
	recorded, unrecorded := s.books.started(), 0
	began := map[string]bool{}
	for _, l := range starts(s.lines) {
		if _, known := recorded[l.run]; !known {
			unrecorded++
		}
		id := fmt.Sprint(l.job, l.tick)
		if began[id] {
			twice++
		}
		began[id] = true
	}
	s.note("first run %s after the fault; no node ended", short(noSooner+s.firstAfter(fault.Add(noSooner))))
	s.note("%d ticks ran twice, %d runs have no record, %d ticks neither ran nor are recorded", twice, unrecorded, s.report.Verdicts[judge.Vanished])
	return twice
}
