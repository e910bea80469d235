package scheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
)

// newHeard is a quiet of four partitions, and what it logs.
func newHeard() (*quiet, *bytes.Buffer) {
	var out bytes.Buffer
	h := &health{log: slog.New(slog.NewTextHandler(&out, nil)), unanswered: func(error) {}}
	q := newQuiet(h)
	q.parts, q.apart = 4, true
	return q, &out
}

var errSilent = fmt.Errorf("claim: %w", locking.ErrUnreachable)

func TestQuietPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, out := newHeard()
		want := func(when string, quiet ...int) {
			t.Helper()
			heard, got, _ := q.split()
			if !slices.Equal(got, quiet) || len(heard)+len(got) != 4 {
				t.Errorf("%s: quiet %v, heard %v; want quiet %v", when, got, heard, quiet)
			}
		}
		want("at first")
		q.fail(roleClaim, errSilent, 1)
		q.fail(roleSweep, errSilent, 1, 2)
		want("two are not heard", 1, 2)
		if err := q.health.trouble(); err != nil {
			t.Errorf("others are heard, but health says %v", err)
		}
		if got := strings.Count(out.String(), "level=WARN"); got != 1 {
			t.Errorf("%d warnings, want one:\n%s", got, out)
		}
		time.Sleep(sayAgain)
		q.fail(roleClaim, errSilent, 1)
		if got := strings.Count(out.String(), "level=WARN"); got != 2 {
			t.Errorf("%d warnings after a while, want another one:\n%s", got, out)
		}
		answered := q.aside(1)
		q.ok(roleSweep, 1, 2)
		want("a batch is repeated", 1)
		answered()
		want("it was answered")
		if !strings.Contains(out.String(), "answer again") {
			t.Errorf("that all are back is not said:\n%s", out)
		}
	})
}

func TestQuietWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newHeard()
		q.fail(roleClaim, errSilent, 0, 1, 2, 3)
		if err := q.health.trouble(); !errors.Is(err, locking.ErrUnreachable) {
			t.Errorf("no master is heard, but health says %v", err)
		}
		q.ok(roleClaim, 3)
		if err := q.health.trouble(); err != nil {
			t.Errorf("one is heard, but health says %v", err)
		}
		refused := errors.New("WRONGTYPE")
		q.fail(roleClaim, refused, 3)
		if err := q.health.trouble(); !errors.Is(err, refused) || q.of(3) {
			t.Errorf("a refusal is %v, quiet %v; want it to be the role's, and the partition heard", err, q.of(3))
		}
		q.apart, q.gone = false, make(map[int]*absence)
		q.fail(roleClaim, errSilent, 1)
		if err := q.health.trouble(); !errors.Is(err, locking.ErrUnreachable) || q.of(1) {
			t.Errorf("without a Cluster health says %v, quiet %v; want the one Redis to be away, and no partition", err, q.of(1))
		}
	})
}

// TestQuietLate: what became late while its partition was quiet counts as late from when those could ask again who go first.
func TestQuietLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newHeard()
		q.fail(roleClaim, errSilent, 1)
		time.Sleep(time.Minute)
		q.ok(roleClaim, 1)
		for _, c := range []struct {
			after time.Duration
			part  int
			want  time.Duration
		}{{0, 0, time.Minute}, {0, 1, -askedAnew}, {2 * askedAnew, 1, askedAnew}, {time.Hour, 1, time.Minute}} {
			time.Sleep(c.after)
			if got := q.late(c.part, time.Minute); got != c.want {
				t.Errorf("partition %d, %s later: late by %s, want %s", c.part, c.after, got, c.want)
			}
		}
	})
}

// TestFullMaster: a master that refuses for want of memory is away for its partitions alone, one Redis that does refuses.
func TestFullMaster(t *testing.T) {
	q, _ := newHeard()
	oom := redis.Error(proto("OOM command not allowed when used memory > 'maxmemory'."))
	if err := q.spare("register", oom, 1); !errors.Is(err, errQuiet) || !q.of(1) || q.of(2) {
		t.Errorf("spared with %v; want partition 1 quiet alone", err)
	}
	q, _ = newHeard()
	q.apart = false
	if err := q.full(oom); errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("one Redis without memory is unreachable: %v", err)
	}
}

// proto is an error reply of a server.
type proto string

func (p proto) Error() string { return string(p) }
func (p proto) RedisError()   {}

// A lease that lapsed while its master did not answer, or answered and took no writes, is reaped only when it has had its ttl to be
// renewed, or its run's end to be told.
func TestRipeAfterAnAbsence(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n, embedded, stop := running(t, jobs.Job{Name: "job", Schedule: "@every 1h", Func: func(context.Context, *jobs.Run) error { return nil }})
			defer stop()
			s, lapsed := newSweep(n), []ledger.Lease{{Job: "job", Run: "run", Node: n.id, TTL: 5000}, {Job: "job", Run: "of a node that is gone", TTL: 5000}}
			q, _ := newHeard()
			s.n = &Node{id: n.id, ledger: n.ledger, clock: n.clock, quiet: q} // as on a Cluster
			s.n.crowd.Store(n.crowd.Load())
			if deaf {
				embedded.SetHook(func(c *server.Peer, cmd string, _ ...string) bool {
					if cmd == "SET" {
						c.WriteError("READONLY You can't write against a read only replica.")
					}
					return cmd == "SET"
				})
				for range 10 {
					s.ripe(t.Context(), lapsed)
					time.Sleep(time.Second)
				}
				embedded.SetHook(nil)
			} else {
				s.ripe(t.Context(), lapsed)
				time.Sleep(10 * time.Second)
			}
			for i, want := range []int{1, 1, 1, 1, 1, 2} {
				if ripe := s.ripe(t.Context(), lapsed); len(ripe) != want {
					t.Errorf("takes no writes: %t; %d leases are ripe %d s later, want %d", deaf, len(ripe), i, want)
				}
				time.Sleep(time.Second)
			}
		})
	}
}
