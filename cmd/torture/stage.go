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
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// wrongExit is a node that ended by itself, or not as it should.
const wrongExit kind = "EXIT"

// stage is where one scenario takes place: a directory, a redis-server, nodes. close ends them.
type stage struct {
	settings
	dir    string
	binary string
	// lacking is the program without a guard, lacks; "": all nodes have all.
	lacking string
	lacks   guard

	say func(format string, args ...any)

	redis  *redistest.Server // nil where there are
	watch  *redistest.Sentinels
	shards *redistest.Cluster // or a Cluster
	client redis.UniversalClient
	// Where the namespace is going to move, and a client of it.
	cluster *redistest.Cluster
	there   *redis.ClusterClient

	nodes  []*node         // every one that was started
	struck map[string]bool // nodes that were killed or frozen
	dead   map[string]bool // nodes that were killed
	left   map[string]bool // nodes that were told to leave before the end
	post   *post           // writes the sink, where jobs are HTTP calls

	from     time.Time // of the window that the schedules are held to
	asked    time.Time // when all nodes were told to end; zero: they were not
	ended    time.Time // when the last node had: until then one that drains may still claim what it goes first for
	findings findings
	books    books
	audit    audit
	lines    []line
	notes    []string // figures of this scenario alone
}

func (s *stage) sink() string  { return filepath.Join(s.dir, "sink") }
func (s *stage) lives() string { return filepath.Join(s.dir, "alive") }

// open makes the directory, the configuration and the server.
func (s *stage) open() error {
	s.struck, s.dead, s.left = map[string]bool{}, map[string]bool{}, map[string]bool{}
	if err := s.openRedis(filepath.Join(s.dir, "redis")); err != nil {
		return err
	}
	if err := s.openNext(filepath.Join(s.dir, "next")); err != nil {
		return err
	}
	if err := os.WriteFile(s.lives(), nil, 0o600); err != nil {
		return err
	}
	if err := s.openPost(); err != nil {
		return err
	}
	return s.writeConfig(filepath.Join(s.dir, "config.yaml"), s.sink(), s.lives())
}

// close ends every process that is left; commands end with the file $ALIVE.
func (s *stage) close() error {
	_ = os.Remove(s.lives()) // gone already after a good end
	for _, n := range s.nodes {
		n.end()
	}
	return errors.Join(s.post.close(), s.closeRedis(), s.closeNext())
}

// start starts a node; it need not be ready yet.
func (s *stage) start(name string, more ...string) (*node, error) {
	binary := s.binary
	if s.lacking != "" && (s.lacks.only == "" || s.lacks.only == name) {
		binary = s.lacking
	}
	n, err := startNode(binary, s.dir, name, s.redisFlags(more)...)
	if err == nil {
		s.nodes = append(s.nodes, n)
	}
	return n, err
}

// startAll starts nodes n1, n2, ... and begins the window at the first full second when all are
// ready. more gives a node's own flags.
func (s *stage) startAll(ctx context.Context, count int, more func(i int) []string) error {
	for i := range count {
		var flags []string
		if more != nil {
			flags = more(i)
		}
		if _, err := s.start(fmt.Sprintf("n%d", i+1), flags...); err != nil {
			return err
		}
	}
	for _, n := range s.nodes {
		if err := n.ready(ctx); err != nil {
			return err
		}
	}
	s.from = time.Unix(time.Now().Unix()+1, 0).UTC()
	return nil
}

// accuse notes a broken promise that is seen outside of sink and books.
func (s *stage) accuse(k kind, format string, args ...any) {
	s.findings.add(k, format, args...)
}

// note keeps a figure of this scenario.
func (s *stage) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// node is the one of that name.
func (s *stage) node(name string) (*node, error) {
	i := slices.IndexFunc(s.nodes, func(n *node) bool { return n.name == name })
	if i < 0 {
		return nil, fmt.Errorf("the sink names a node %q, which was never started", name)
	}
	return s.nodes[i], nil
}

// amid waits for a full second and then for the first line that is written in it: the nodes are
// in the middle of claims, starts and settles.
func (s *stage) amid(ctx context.Context) error {
	if err := waitUntil(ctx, time.Unix(time.Now().Unix()+1, 0)); err != nil {
		return err
	}
	before := s.written()
	for s.written() == before {
		if err := wait(ctx, 500*time.Microsecond); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) written() int64 {
	info, err := os.Stat(s.sink())
	if err != nil {
		return 0
	}
	return info.Size()
}

// owners is which node goes first, by job.
func (s *stage) owners(ctx context.Context) (map[string]string, error) {
	inspector, err := scheduler.NewInspector(s.client, namespace)
	if err != nil {
		return nil, err
	}
	views, err := inspector.Jobs(ctx)
	owners := map[string]string{}
	for _, v := range views {
		owners[v.Name] = v.Owner
	}
	return owners, err
}

// count is how many jobs each node has.
func count(owners map[string]string) map[string]int {
	n := map[string]int{}
	for _, owner := range owners {
		n[owner]++
	}
	return n
}

// reaped waits until no run of a killed node is in flight any more.
func (s *stage) reaped(ctx context.Context) error {
	for {
		b, err := readBooks(ctx, s.client)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(b.Open, func(l ledger.Lease) bool { return !s.dead[l.NodeName] })
		if len(left) == 0 {
			return nil
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("%d runs of killed nodes are still not reaped: %w", len(left), err)
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

// logger writes what is going on, with the time since the start.
func logger(w io.Writer) func(format string, args ...any) {
	begun := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(w, "%6.1fs  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}
}
