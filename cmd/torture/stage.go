//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// wrongExit is a node that ended by itself, or with a wrong exit code.
const wrongExit judge.Kind = "EXIT"

// stage is where one scenario takes place: a directory, a redis-server, nodes. close ends them.
type stage struct {
	settings
	dir    string
	binary string

	say func(format string, args ...any)

	// hurried: other work may keep the machine busy, so no start is too late. Promises about time
	// are judged in virtual time, and by the long torture.
	hurried bool

	redis  *redistest.Server // nil where there are
	watch  *redistest.Sentinels
	shards *redistest.Cluster // or a Cluster
	client redis.UniversalClient

	nodes []*node // every node that was started
	post  *post   // writes the sink, where jobs are HTTP calls

	faults []judge.Disturbance // of Redis, for the judge
	begun  time.Time           // when the first node was started
	from   time.Time           // from then on each tick is accounted for
	asked  time.Time           // when all nodes got SIGTERM; zero: they did not
	ended  time.Time           // when the last node had

	lines    []line
	books    books
	report   judge.Report
	findings []judge.Finding
	notes    []string // figures of this scenario alone
}

func (s *stage) sink() string  { return filepath.Join(s.dir, "sink") }
func (s *stage) lives() string { return filepath.Join(s.dir, "alive") }

// open makes the directory, the configuration and the server. Where late starts count, open returns
// when the server is older than the hold: the first nodes grant nothing before.
func (s *stage) open(ctx context.Context) {
	s.openRedis(filepath.Join(s.dir, "redis"))
	if !s.hurried {
		s.check(wait(ctx, failoverHold))
	}
	s.check(os.WriteFile(s.lives(), nil, 0o600))
	if s.posts {
		s.openPost()
	}
	s.check(s.writeConfig(filepath.Join(s.dir, "config.yaml"), s.sink(), s.lives()))
}

// close ends every process that is left; commands end with the file $ALIVE.
func (s *stage) close() error {
	_ = os.Remove(s.lives()) // gone already after a good end
	for _, n := range s.nodes {
		n.end()
	}
	return errors.Join(s.post.close(), s.closeRedis())
}

// start starts a node; it need not be ready yet.
func (s *stage) start(name string, more ...string) *node {
	if s.begun.IsZero() {
		s.begun = time.Now()
	}
	n, err := startNode(s.binary, s.dir, name, s.redisFlags(more)...)
	s.check(err)
	s.nodes = append(s.nodes, n)
	return n
}

// startAll starts nodes n1, n2, ... and returns when all are ready.
func (s *stage) startAll(ctx context.Context, count int) {
	for i := range count {
		s.start(fmt.Sprint("n", i+1))
	}
	s.ready(ctx, s.nodes)
}

// ready waits until the nodes are ready. From the readiness of the first ones on, each tick is
// accounted for.
func (s *stage) ready(ctx context.Context, nodes []*node) {
	for _, n := range nodes {
		s.check(n.ready(ctx))
	}
	if s.from.IsZero() {
		s.from = time.Unix(time.Now().Unix()+1, 0).UTC()
	}
}

// stuck is the value that check panics with.
type stuck struct{ error }

// check ends the scenario at an error, as Fatal ends a test.
func (s *stage) check(err error) {
	if err != nil {
		panic(stuck{err})
	}
}

// play calls act, and returns the error given to check.
func play(act func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stuck:
			err = r.error
		default:
			panic(r)
		}
	}()
	act()
	return nil
}

// accuse records a violation that only this program can see; about is a job, a node or another
// subject.
func (s *stage) accuse(k judge.Kind, about, format string, args ...any) {
	s.findings = append(s.findings, judge.NewFinding(k, about, time.Time{}, format, args...))
}

// note keeps a figure of this scenario.
func (s *stage) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// node returns the node of that name.
func (s *stage) node(name string) *node {
	i := slices.IndexFunc(s.nodes, func(n *node) bool { return n.name == name })
	if i < 0 {
		s.check(fmt.Errorf("node %q was never started", name))
	}
	return s.nodes[i]
}

// amid waits for a full second and then for the first line that is written in it: the nodes are
// in the middle of claims, starts and settles.
func (s *stage) amid(ctx context.Context) {
	s.check(waitUntil(ctx, time.Unix(time.Now().Unix()+1, 0)))
	for before := s.written(); s.written() == before; {
		s.check(wait(ctx, 500*time.Microsecond))
	}
}

func (s *stage) written() int64 {
	info, err := os.Stat(s.sink())
	if err != nil {
		return 0
	}
	return info.Size()
}

// reaped waits until no run of these nodes is in flight any more.
func (s *stage) reaped(ctx context.Context, gone func(*node) bool) {
	s.eventually(ctx, time.Minute, "the runs of dead or frozen nodes are not reaped", func(ctx context.Context) (bool, error) {
		b, err := readBooks(ctx, s.client, namespace)
		return !slices.ContainsFunc(b.open(), func(l judge.Run) bool {
			return slices.ContainsFunc(s.nodes, func(n *node) bool { return n.name == l.NodeName && gone(n) })
		}), err
	})
}

// eventually waits until `is` returns true. If that takes too long, the scenario ends with the
// words of unless.
func (s *stage) eventually(ctx context.Context, within time.Duration, unless string, is func(context.Context) (bool, error)) {
	if s.hurried {
		within = standstill
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		so, err := is(ctx)
		if so && err == nil {
			return
		}
		if e := wait(ctx, 20*time.Millisecond); e != nil {
			s.check(fmt.Errorf("%s within %s: %w", unless, within, errors.Join(err, e)))
		}
	}
}

// wait returns after d, or with ctx's error.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func waitUntil(ctx context.Context, t time.Time) error { return wait(ctx, time.Until(t)) }

// logger returns a function that writes progress, with the time since the start.
func logger(w io.Writer) func(format string, args ...any) {
	begun := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(w, "%6.1fs  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}
}

// openRedis starts the server, or several of them and sentinels, or a Cluster.
func (s *stage) openRedis(data string) {
	var err error
	s.check(os.MkdirAll(data, 0o700))
	switch {
	case s.sharded:
		s.shards, err = redistest.StartClusterProcess(redistest.ClusterConfig{Dir: data, Args: s.clusterArgs})
		s.check(err)
		s.section = map[string]any{"mode": "cluster", "addrs": s.shards.Options().Addrs}
		s.client = redis.NewClusterClient(s.shards.Options())
	case s.sentinel:
		s.watch, err = redistest.StartSentinelsProcess(redistest.SentinelsConfig{Dir: data})
		s.check(err)
		s.section = map[string]any{"mode": "sentinel", "addrs": s.watch.Addrs(), "master_name": s.watch.MasterName()}
		s.client = redis.NewFailoverClient(s.watch.Options())
	default:
		s.redis, err = redistest.StartProcess(redistest.ProcessConfig{Dir: data})
		s.check(err)
		s.client = redis.NewClient(redistest.ClientOptions(s.redis.Addr()))
	}
}

// redisFlags returns a node's flags, including the server's URL.
func (s *stage) redisFlags(more []string) []string {
	if s.redis == nil {
		return more
	}
	return append([]string{"--redis", "redis://" + s.redis.Addr()}, more...)
}

func (s *stage) closeRedis() error {
	var errs []error
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	if s.redis != nil {
		errs = append(errs, s.redis.Kill())
	}
	if s.watch != nil {
		errs = append(errs, s.watch.Kill())
	}
	if s.shards != nil {
		errs = append(errs, s.shards.Kill())
	}
	return errors.Join(errs...)
}
