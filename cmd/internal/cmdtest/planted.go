//go:build unix

package cmdtest

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/schedtest/ledgertest"
)

// Planted are jobs that no node holds, so that nothing moves by itself.
type Planted struct {
	*ledgertest.Ledger
	T      *testing.T
	Env    []string
	Client *redis.Client
	Ops    *ops.Client
	Server *redistest.Server
}

// Plant stores the definitions of jobs in a Redis of their own.
func Plant(t *testing.T, list ...jobs.Job) *Planted {
	t.Helper()
	server := redistest.Start(t)
	client := server.Client(t)
	l, err := ledgertest.Open(t.Context(), client, ledgertest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := ops.New(client, "")
	if err != nil {
		t.Fatal(err)
	}
	p := &Planted{Ops: in, Ledger: l, T: t, Client: client, Server: server, Env: []string{"ESCAPEMENT_REDIS_URL=redis://" + server.Addr(), "ESCAPEMENT_AUTHOR=ann"}}
	for _, j := range list {
		text, err := json.Marshal(j.Definition())
		if err != nil {
			t.Fatal(err)
		}
		d := ledgertest.Definition{Job: j.Name, Digest: j.Definition().Digest(), Text: text}
		if schedule, err := j.ParsedSchedule(); err != nil {
			t.Fatal(err)
		} else if schedule != nil {
			d.Cursor = schedule.Next(time.Now().Add(-time.Hour)).UnixMilli()
		}
		if got, err := ledgertest.Define(t.Context(), l, time.Now().UnixMilli(), []ledgertest.Definition{d}); err != nil || got[0].Status != "created" {
			t.Fatal(got, err)
		}
	}
	return p
}

// Trigger requests a run, and returns its id.
func (p *Planted) Trigger(job, payload string) string {
	p.T.Helper()
	id, err := p.Ops.Trigger(p.T.Context(), job, ops.TriggerOptions{Payload: []byte(payload)})
	if err != nil {
		p.T.Fatal(err)
	}
	return id
}

// Granted is a run by hand that a node has begun.
func (p *Planted) Granted(job jobs.Job, payload string) string {
	p.T.Helper()
	id := p.Trigger(job.Name, payload)
	c := ledgertest.Claim{Job: job.Name, Digest: job.Definition().Digest(), Run: id, TTL: time.Hour, Pending: true, Attempts: 2}
	got, err := ledgertest.SendClaims(p.T.Context(), p.Ledger, ledgertest.Claimer{ID: "n", Name: "n1"}, time.Now().UnixMilli(), []ledgertest.Claim{c})
	if err != nil || got[0].Verdict != ledgertest.Granted {
		p.T.Fatal(got, err)
	}
	return id
}

// End ends a run as its node would.
func (p *Planted) End(job, run string, outcome jobs.Outcome, output string) {
	p.T.Helper()
	now := time.Now().UnixMilli()
	r := ledgertest.Report{Job: job, Run: run, Outcome: outcome, Started: now, Ended: now, Tries: 1, Output: []byte(output)}
	if got, err := ledgertest.Settle(p.T.Context(), p.Ledger, []ledgertest.Report{r}); err != nil || got[0] != ledgertest.Settled {
		p.T.Fatal(got, err)
	}
}

// Wants runs one command line and compares its exit code and its output: with out "" nothing on
// stdout.
func (p *Planted) Wants(code int, out, words string, args ...string) string {
	p.T.Helper()
	got, stdout, stderr := Call(p.Env, "", args...)
	if got != code || !strings.Contains(stdout, out) || !strings.Contains(stderr, words) {
		p.T.Errorf("%v: exit %d, want %d\nstdout %q, want %q\nstderr %q, want %q", args, got, code, stdout, out, stderr, words)
	}
	if out == "" && stdout != "" {
		p.T.Errorf("%v: %q on stdout", args, stdout)
	}
	return strings.TrimSpace(stdout)
}

// Shard is a part of a tick that a node has begun.
func (p *Planted) Shard(job jobs.Job, shard int) string {
	p.T.Helper()
	id := p.Trigger(job.Name, "")
	c := ledgertest.Claim{Job: job.Name, Digest: job.Definition().Digest(), Run: id, TTL: time.Hour, Pending: true, Shards: job.Shards}
	claim := func(want ledgertest.Verdict) {
		p.T.Helper()
		if got, err := ledgertest.SendClaims(p.T.Context(), p.Ledger, ledgertest.Claimer{ID: "n", Name: "n1"}, time.Now().UnixMilli(), []ledgertest.Claim{c}); err != nil || got[0].Verdict != want {
			p.T.Fatal(got, err)
		}
	}
	claim(ledgertest.Opened)
	open, err := ledgertest.InFlight(p.T.Context(), p.Ledger, job.Name)
	if err != nil {
		p.T.Fatal(err)
	}
	for _, l := range open {
		if l.Pending() && l.Shard == shard {
			c.Run, c.Shard = l.ID, true
		}
	}
	claim(ledgertest.Granted)
	return c.Run
}

// HoldLock takes a lock in this process.
func HoldLock(t *testing.T, redis *redistest.Server, name string, o locking.Options) *locking.Lease {
	t.Helper()
	locker := redislock.New(redis.Client(t), redislock.Config{})
	t.Cleanup(locker.Close)
	lease, err := locker.Acquire(t.Context(), name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lease.Release(context.Background()) }) // mostly it has ended
	return lease
}

// RedisEnv is an environment that names a Redis and an operator.
func RedisEnv(redis *redistest.Server) []string {
	return []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_AUTHOR=ann", "PATH=" + os.Getenv("PATH")}
}
