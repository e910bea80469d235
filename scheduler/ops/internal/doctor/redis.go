package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// askWithin bounds all questions to one server.
const askWithin = 3 * time.Second

// examineServers examines the server, or the masters of a Cluster, of a namespace. A fact that a
// server does not reveal is itself a warning.
func examineServers(ctx context.Context, client redis.UniversalClient, namespace string, to *list) {
	var mu sync.Mutex
	var all []server
	err := redisconn.EachMaster(ctx, client, func(ctx context.Context, c redis.Cmdable) error {
		one, is := c.(redis.UniversalClient)
		if !is {
			one = client
		}
		s := look(ctx, one, namespace)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return nil
	})
	if err != nil {
		to.add(Problem{"redis_unreachable", Error, onServer, redisconn.Addr(client), "the masters cannot be asked: " + plain(err), "start the servers, or mend redis.addrs", 0})
	}
	for _, s := range all {
		s.problems(to)
	}
	clocks(all, to)
	if cluster, is := client.(*redis.ClusterClient); is {
		slots(ctx, cluster, to)
	}
}

// server is the state of one server.
type server struct {
	addr   string
	info   map[string]string // INFO; nil where it was refused
	err    error             // why
	offset time.Duration     // its clock minus this machine's
	timed  bool              // offset is known
	denied []string          // missing rights of the user, in the form of ACL SETUSER
}

// look reads the state of a server.
func look(ctx context.Context, c redis.UniversalClient, namespace string) server {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	s := server{addr: redisconn.Addr(c)}
	text, err := c.Info(ctx).Result()
	if s.err = redisconn.Explain(c, namespace, err); err == nil {
		s.info = fields(text)
	}
	before := time.Now()
	if now, err := c.Time(ctx).Result(); err == nil {
		s.timed, s.offset = true, now.Sub(before.Add(time.Since(before)/2))
	}
	s.denied = denied(ctx, c, namespace)
	return s
}

// fields are the fields of INFO.
func fields(text string) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}

func (s *server) number(name string) int64 {
	n, _ := strconv.ParseInt(s.info[name], 10, 64) // 0 for a missing field
	return n
}

func (s *server) problems(to *list) {
	add := func(code, severity, text, cure string) {
		to.add(Problem{code, severity, onServer, s.addr, text, cure, 0})
	}
	trouble := (*redisconn.Trouble)(nil)
	switch {
	case s.err != nil && redisconn.Denied(s.err):
		add("redis_not_looked_at", Warning, "its version, persistence, memory and replicas could not be looked at: "+plain(s.err),
			"give the user the right to INFO (ACL SETUSER NAME +info); without it nodes notice no failover either")
	case errors.As(s.err, &trouble):
		add("redis_not_looked_at", Warning, "its version, persistence, memory and replicas could not be looked at: "+plain(errors.New(trouble.Text)), trouble.Cure)
	case s.err != nil:
		add("redis_not_looked_at", Warning, "its version, persistence, memory and replicas could not be looked at: "+plain(s.err),
			"see whether it is up; a service that hides INFO must be checked in its own console")
	default:
		s.version(add)
		s.persistence(add)
		s.memory(add)
		s.replicas(add)
	}
	if len(s.denied) > 0 {
		add("redis_permissions", Error, "its user lacks "+strings.Join(s.denied, " "),
			"ACL SETUSER NAME "+strings.Join(s.denied, " ")+"; docs/operations.md has all that a user needs")
	}
}

// oldest is the first version that is known to work.
const oldest = 7

func (s *server) version(add func(code, severity, text, cure string)) {
	major, _, _ := strings.Cut(s.info["redis_version"], ".")
	if n, err := strconv.Atoi(major); err == nil && n < oldest {
		add("redis_version", Error, fmt.Sprintf("it is Redis %s; Escapement is made for %d and later", s.info["redis_version"], oldest), "upgrade Redis, or move the namespace to a newer one (move --help)")
	}
	if s.info["role"] == "slave" {
		add("redis_replica", Error, "it is a replica, which takes no writes", "name its master in redis.url, or the sentinels that know it")
	}
}

func (s *server) persistence(add func(code, severity, text, cure string)) {
	const cure = "set appendonly yes in redis.conf, and at once with CONFIG SET appendonly yes"
	switch known := s.info["aof_enabled"]; {
	case known == "":
		return // the embedded one, which has no disk
	case known == "1" && s.info["aof_last_write_status"] == "err":
		add("redis_disk", Error, "it cannot write its append-only file", "see Redis' log; free space on its disk")
	case known == "1":
	case s.snapshots() && !s.saved():
		add("redis_no_appendonly", Warning, "appendonly is off, and no snapshot was taken since the server started: after a crash it has forgotten what was written since then, so ticks may run twice and history may be lost", cure)
	case s.snapshots():
		add("redis_no_appendonly", Warning, "appendonly is off: after a crash it has forgotten what was written since its last snapshot, so ticks may run twice and history may be lost", cure)
	default:
		add("redis_no_persistence", Error, "nothing is written to its disk: after a restart it has forgotten jobs, cursors and history, and ticks may run twice", cure)
	}
	if s.info["rdb_last_bgsave_status"] == "err" {
		add("redis_snapshot", Error, "its last snapshot failed; with stop-writes-on-bgsave-error it takes no writes", "see Redis' log; free space on its disk and memory for the fork")
	}
}

// unsaved is how long a server with changes may go without a snapshot while snapshots are on: the
// usual settings take one after an hour.
const unsaved = 2 * time.Hour

// snapshots reports whether the server seems to take snapshots. INFO does not have the setting, and
// CONFIG is for administrators only; but a server that has not saved since it started, and has had
// changes for long, takes none.
func (s *server) snapshots() bool {
	up := redisconn.Duration(s.number("uptime_in_seconds"), time.Second)
	return s.saved() || up < unsaved || s.number("rdb_changes_since_last_save") == 0
}

// saved reports whether the server took a snapshot since it started.
func (s *server) saved() bool {
	started := s.number("server_time_usec")/1e6 - s.number("uptime_in_seconds")
	return s.number("rdb_last_save_time") > started+2 || s.number("rdb_saves") > 0
}

// nearlyFull is the part of maxmemory, in percent, from which a server is nearly full.
const nearlyFull = 90

func (s *server) memory(add func(code, severity, text, cure string)) {
	most, policy := s.number("maxmemory"), s.info["maxmemory_policy"]
	if most == 0 {
		return
	}
	if policy != "" && policy != "noeviction" {
		add("redis_evicts", Error, "it drops keys when its memory is full (maxmemory-policy "+policy+"): a tick may run twice, and history vanish",
			"set maxmemory-policy noeviction in redis.conf, and at once with CONFIG SET maxmemory-policy noeviction")
	}
	used := s.number("used_memory") - s.number("mem_not_counted_for_evict")
	const cure = "raise its maxmemory, delete what else is stored there, or keep less (history.keep)"
	switch percent := int64(float64(used) * 100 / float64(most)); {
	case used > most:
		add("redis_full", Error, "its memory is full: it takes no writes, and nothing is claimed", cure)
	case percent >= nearlyFull:
		add("redis_nearly_full", Warning, fmt.Sprintf("%d %% of its maxmemory is used", percent), cure)
	}
}

// lagging is how long ago a replica that keeps up has acknowledged something, in seconds: each does
// once a second.
const lagging = 10

func (s *server) replicas(add func(code, severity, text, cure string)) {
	for k := range s.number("connected_slaves") {
		r := make(map[string]string)
		for pair := range strings.SplitSeq(s.info[fmt.Sprintf("slave%d", k)], ",") {
			name, value, _ := strings.Cut(pair, "=")
			r[name] = value
		}
		if lag, _ := strconv.Atoi(r["lag"]); r["state"] != "" && (r["state"] != "online" || lag > lagging) {
			add("redis_replica_lags", Warning, fmt.Sprintf("its replica %s:%s is %s and was last heard of %s s ago: a failover to it would lose acknowledged writes", r["ip"], r["port"], r["state"], r["lag"]),
				"see the replica's log and the network between them; with redis.confirm: replicas nothing runs while too few keep up")
		}
	}
}

// How far the clocks of masters may be apart. Nodes refuse a distance above max_skew, 1 s by
// default.
const (
	apartWarning = 250 * time.Millisecond
	apartError   = time.Second
)

// clocks compares the clocks of masters.
func clocks(all []server, to *list) {
	var least, most *server
	for k := range all {
		if s := &all[k]; s.timed {
			if least == nil || s.offset < least.offset {
				least = s
			}
			if most == nil || s.offset > most.offset {
				most = s
			}
		}
	}
	if least == nil || most.offset-least.offset < apartWarning {
		return
	}
	severity, apart := Warning, most.offset-least.offset
	if apart >= apartError {
		severity = Error
	}
	to.add(Problem{"redis_clocks", severity, onServer, most.addr, fmt.Sprintf("its clock is %s ahead of that of %s", apart.Round(time.Millisecond), least.addr),
		"let NTP or chrony set the clocks of all machines that run Redis", 0})
}

// clusterSlots is how many hash slots a Cluster has.
const clusterSlots = 16384

// slots looks for slots of a Cluster that no master has.
func slots(ctx context.Context, cluster *redis.ClusterClient, to *list) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	shards, err := cluster.ClusterShards(ctx).Result()
	if err != nil {
		to.add(Problem{"redis_not_looked_at", Warning, onServer, redisconn.Addr(cluster), "the slots of the Cluster could not be looked at: " + plain(err),
			"give the user the right to it (ACL SETUSER NAME +cluster|shards)", 0})
		return
	}
	covered := 0 // slots of living masters
	for _, s := range shards {
		if slices.ContainsFunc(s.Nodes, func(n redis.Node) bool { return n.Role == "master" && n.Health == "online" }) {
			for _, r := range s.Slots {
				covered += int(r.End - r.Start + 1)
			}
		}
	}
	if lost := clusterSlots - covered; lost > 0 {
		to.add(Problem{"redis_slots", Error, onServer, redisconn.Addr(cluster), fmt.Sprintf("%d of the Cluster's %d slots have no master: jobs there stand still", lost, clusterSlots),
			"start the master or a replica of it, or assign the slots (redis-cli --cluster fix)", 0})
	}
}

// plain is an error on one line.
func plain(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
