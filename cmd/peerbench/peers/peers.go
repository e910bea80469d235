package peers

import (
	"context"
	"time"
)

// Config is the settings of a peer's process.
type Config struct {
	Addr  string // of the redis-server
	Index int    // of this process among Nodes, from 0
	Nodes int
	Jobs  int // due at each second
	// Note is called first by each job's function, with the tick that it runs for.
	Note func(job int, tick time.Time)
}

// Stop ends the started scheduler, waits for its end, and returns its errors. It is nil where the
// end of the process is end enough.
type Stop func() error

// Peer is one library, or one way to use it.
type Peer struct {
	Name  string // on the command line
	Title string // for people
	// NoRedis: it uses no Redis, and therefore runs in one process, whatever the number of nodes.
	NoRedis bool
	// Nodes is how many processes run it, 0 as many as the flags set; Jobs the only number of jobs
	// to measure it with, 0 any number of the flags.
	Nodes, Jobs int
	// Idle: it has jobs, and none of them is due.
	Idle bool
	// Ours is held to its promises: each tick runs once, and none early.
	Ours  bool
	Start func(ctx context.Context, cfg Config) (Stop, error)
}

// All are the peers, in the order in which they take turns.
func All() []Peer {
	return []Peer{
		{Name: "ours", Title: "Escapement", Ours: true, Start: startOurs},
		{Name: "cron", Title: "robfig/cron alone, no lock", NoRedis: true, Start: startCron},
		{Name: "setnx", Title: "robfig/cron + SET NX PX", Start: startSetNX},
		{Name: "gocron", Title: "gocron + its Redis lock", Start: startGocron},
		{Name: "asynq", Title: "asynq scheduler + workers", Start: startAsynq},
		{Name: "ours10", Title: "Escapement, 10 nodes", Ours: true, Nodes: 10, Jobs: 1000, Start: startOurs},
		{Name: "idle", Title: "Escapement, idle", Ours: true, Idle: true, Start: startIdle},
	}
}

// Find returns the peer of a name.
func Find(name string) (Peer, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return Peer{}, false
}

// everySecond is the schedule of all jobs, with seconds.
const everySecond = "* * * * * *"
