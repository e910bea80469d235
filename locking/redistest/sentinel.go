//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The shape of every Sentinels.
const (
	masterName = "main"
	replicas   = 2
	sentinels  = 3
)

// answerWithin is how long a server may take to answer a question that is repeated.
const answerWithin = 2 * time.Second

// SentinelsConfig is how StartSentinelsProcess starts its processes.
type SentinelsConfig struct {
	Dir string // where their data and logs go; required, must exist

	// Attentive sentinels poll more often: an old master that comes back becomes a replica after two or three seconds, not
	// eighteen.
	Attentive bool
}

// Sentinels are one master, two replicas and three sentinels that agree on the master, all on the
// loopback interface. A master that does not answer for a second is replaced.
type Sentinels struct {
	servers []*Server  // the first master first
	watch   []*Server  // the sentinels
	logs    []*os.File // the output of each process
}

// StartSentinels starts Sentinels for one test and ends them, by their pids, when the test does.
func StartSentinels(tb TB) *Sentinels {
	tb.Helper()
	s, err := StartSentinelsProcess(SentinelsConfig{Dir: tb.TempDir(), Attentive: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Kill(); err != nil {
			tb.Fatal(err)
		}
	})
	return s
}

// StartSentinelsProcess starts Sentinels and returns when each sentinel sees the replicas and the
// other sentinels. The caller ends them with Kill; on Linux they also end with this process.
func StartSentinelsProcess(cfg SentinelsConfig) (*Sentinels, error) {
	if cfg.Dir == "" {
		return nil, errors.New("redis-server: no directory for the data; set SentinelsConfig.Dir")
	}
	s := &Sentinels{}
	if err := s.start(cfg); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	return s, nil
}

func (s *Sentinels) start(cfg SentinelsConfig) error {
	ctx, cancel := context.WithTimeout(context.Background(), standstill)
	defer cancel()
	args := []string{"--appendonly", "no", "--repl-diskless-sync-delay", "0"}
	for i := range 1 + replicas {
		server, err := s.startIn(cfg.Dir, "server", i, ProcessConfig{Args: args})
		if err != nil {
			return err
		}
		if s.servers = append(s.servers, server); i == 0 {
			args = append(args, "--replicaof", "127.0.0.1", strconv.Itoa(server.cfg.Port))
		}
	}
	// A sentinel reads a master's replicas every ten seconds only, so the replicas come first.
	if err := until(ctx, "the replicas have the master's data", s.replicated); err != nil {
		return err
	}
	for i := range sentinels {
		conf := filepath.Join(cfg.Dir, fmt.Sprintf("sentinel-%d.conf", i+1))
		if err := os.WriteFile(conf, []byte(s.settings()), 0o600); err != nil {
			return err
		}
		server, err := s.startIn(cfg.Dir, "sentinel", i, ProcessConfig{sentinel: conf})
		if err != nil {
			return err
		}
		s.watch = append(s.watch, server)
		if err := attend(ctx, server, cfg.Attentive); err != nil {
			return err
		}
	}
	return until(ctx, "the sentinels know each other", s.complete)
}

// attend makes a sentinel check more often than once a second. A promoted server drops the
// connections of the sentinels. With the usual second between two tries to reconnect the sentinels
// would take the server for dead, and promote the next one. A much shorter period is no good
// either: a replica whose last reply is older than five periods is not promoted, and a sentinel
// reads it once a second.
func attend(ctx context.Context, sentinel *Server, attentive bool) error {
	c := redis.NewClient(ClientOptions(sentinel.Addr()))
	defer c.Close()
	periods := []any{"sentinel", "debug", "ping-period", "400"}
	if attentive { // each ten seconds and each two without
		periods = append(periods, "info-period", "1000", "publish-period", "500")
	}
	if err := c.Do(ctx, periods...).Err(); err != nil {
		return fmt.Errorf("redis sentinel: %s, SENTINEL DEBUG, which Redis has from 7.0 on: %w", sentinel.Addr(), err)
	}
	return nil
}

// startIn starts a process in a directory of its own. Its output is in the file log there.
func (s *Sentinels) startIn(dir, kind string, i int, cfg ProcessConfig) (*Server, error) {
	cfg.Dir = filepath.Join(dir, fmt.Sprintf("%s-%d", kind, i+1))
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(cfg.Dir, "log"))
	if err != nil {
		return nil, err
	}
	s.logs, cfg.log = append(s.logs, log), log
	return StartProcess(cfg)
}

// settings is the text of the file that a sentinel starts with; the sentinel writes its later state
// to the same file.
func (s *Sentinels) settings() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sentinel monitor %s 127.0.0.1 %d 2\n", masterName, s.servers[0].cfg.Port)
	fmt.Fprintf(&b, "sentinel down-after-milliseconds %s 1000\n", masterName)
	fmt.Fprintf(&b, "sentinel failover-timeout %s 3000\n", masterName)
	fmt.Fprintf(&b, "sentinel parallel-syncs %s %d\n", masterName, replicas)
	return b.String()
}

// replicated reports whether every replica has caught up with the first master.
func (s *Sentinels) replicated(ctx context.Context) (bool, error) {
	c := redis.NewClient(ClientOptions(s.servers[0].Addr()))
	defer c.Close()
	info, err := c.Info(ctx, "replication").Result()
	return strings.Count(info, "state=online") == replicas, err
}

// complete reports whether every sentinel sees all servers and sentinels.
func (s *Sentinels) complete(ctx context.Context) (bool, error) {
	for _, w := range s.watch {
		m, _, err := ask(ctx, w)
		if err != nil {
			return false, err
		}
		if m["num-slaves"] != strconv.Itoa(replicas) || m["num-other-sentinels"] != strconv.Itoa(sentinels-1) {
			return false, nil
		}
	}
	return true, nil
}

// ask returns one sentinel's state of the master, and the address that the sentinel gives to
// clients. In the middle of a failover the address is already the new master's, and the rest is
// still the old master's.
func ask(ctx context.Context, sentinel *Server) (known map[string]string, addr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	c := redis.NewSentinelClient(ClientOptions(sentinel.Addr()))
	defer c.Close()
	if known, err = c.Master(ctx, masterName).Result(); err != nil {
		return nil, "", err
	}
	at, err := c.GetMasterAddrByName(ctx, masterName).Result()
	if err != nil {
		return nil, "", err
	}
	return known, net.JoinHostPort(at[0], at[1]), nil
}

// Addrs returns the addresses of the sentinels.
func (s *Sentinels) Addrs() []string {
	var addrs []string
	for _, w := range s.watch {
		addrs = append(addrs, w.Addr())
	}
	return addrs
}

// MasterName returns the master's name at the sentinels.
func (s *Sentinels) MasterName() string { return masterName }

// Servers returns the master and the replicas; which is which changes. A killed server is empty
// when it is started again, and would empty its replicas if it were still master: call its Restart
// only when another server is master.
func (s *Sentinels) Servers() []*Server { return s.servers }

// Master returns the present master according to the sentinels. Of different answers the latest
// counts.
func (s *Sentinels) Master() (*Server, error) {
	var addr string
	var errs []error
	latest := -1
	for _, w := range s.watch {
		m, at, err := ask(context.Background(), w)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if epoch, err := strconv.Atoi(m["config-epoch"]); err == nil && epoch > latest {
			latest, addr = epoch, at
		}
	}
	for _, server := range s.servers {
		if server.Addr() == addr {
			return server, nil
		}
	}
	return nil, errors.Join(append(errs, fmt.Errorf("redis sentinel: the master is %q, which is none of its servers", addr))...)
}

// Promoted waits until another server than old is master, and returns it.
func (s *Sentinels) Promoted(ctx context.Context, old *Server) (now *Server, err error) {
	err = until(ctx, "another server than "+old.Addr()+" is master", func(context.Context) (bool, error) {
		now, err = s.Master()
		return err == nil && now != old, err
	})
	return now, err
}

// Demoted waits until server is a replica, in sync with the master.
func (s *Sentinels) Demoted(ctx context.Context, server *Server) error {
	c := redis.NewClient(ClientOptions(server.Addr()))
	defer c.Close()
	return until(ctx, server.Addr()+" is a replica", func(ctx context.Context) (bool, error) {
		info, err := c.Info(ctx, "replication").Result()
		return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up"), err
	})
}

// Options returns the settings of Client, from ClientOptions. Calls to a master that hangs end with
// their contexts.
func (s *Sentinels) Options() *redis.FailoverOptions {
	o := ClientOptions("")
	return &redis.FailoverOptions{
		MasterName:            masterName,
		SentinelAddrs:         s.Addrs(),
		MaxRetries:            o.MaxRetries,
		DialerRetries:         o.DialerRetries,
		ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		DialTimeout:           o.DialTimeout,
		ReadTimeout:           o.ReadTimeout,
		WriteTimeout:          o.WriteTimeout,
		DisableIdentity:       o.DisableIdentity,
	}
}

// Client returns a client of the current master, closed when the test ends.
func (s *Sentinels) Client(tb TB) *redis.Client {
	tb.Helper()
	c := redis.NewFailoverClient(s.Options())
	tb.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			tb.Fatalf("close the client of %s: %v", masterName, err)
		}
	})
	return c
}

// Kill ends all processes, the sentinels first.
func (s *Sentinels) Kill() error {
	var errs []error
	for _, p := range append(append([]*Server(nil), s.watch...), s.servers...) {
		errs = append(errs, p.Kill())
	}
	for _, log := range s.logs {
		errs = append(errs, log.Close())
	}
	s.logs = nil
	return errors.Join(errs...)
}
