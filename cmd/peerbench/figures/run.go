package figures

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Run is a whole measuring run.
type Run struct {
	When     time.Time         `json:"when"`
	Commit   string            `json:"commit,omitempty"` // of this repository; with a + when files were changed since
	Command  string            `json:"command"`          // how to repeat it, in this module's folder
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"` // of Go, Redis and the contenders' modules
	Seconds  int               `json:"seconds"`  // of one measurement
	Rounds   int               `json:"rounds"`
	Rows     []Row             `json:"rows"`
}

// Machine is where it ran. All processes and Redis shared it.
type Machine struct {
	System    string `json:"system"`
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	MemoryMiB int    `json:"memory_mib"`
}

// Row is one measurement: one contender, one number of jobs, one round.
type Row struct {
	Who   string `json:"who"`
	Title string `json:"title"`
	Jobs  int    `json:"jobs"` // due at each second
	Nodes int    `json:"nodes"`
	Round int    `json:"round"`

	Tally
	Commands  int     `json:"commands"`          // executed by Redis, including commands inside scripts
	Scripts   int     `json:"scripts"`           // calls of scripts
	NodesCPU  float64 `json:"nodes_cpu_s"`       // seconds, of all node processes
	RedisCPU  float64 `json:"redis_cpu_s"`       // seconds
	NodeRSS   int64   `json:"node_rss_bytes"`    // of the node that has most
	Allocs    int64   `json:"allocs"`            // of all node processes
	RedisRSS  int64   `json:"redis_rss_bytes"`   // at the end
	OthersCPU float64 `json:"others_cpu_s"`      // seconds, of all other processes on the machine; 0 where unknown
	Problem   string  `json:"problem,omitempty"` // why there are no figures
	Survived  bool    `json:"survived"`          // it kept up: at least half of the ticks ran
}

// Tally counts the results of the due ticks.
type Tally struct {
	Due    int `json:"due"`
	Once   int `json:"once"`
	Twice  int `json:"twice"` // or more often
	Missed int `json:"missed"`
	Early  int `json:"early"` // started before they were due
	Lags
}

// Lags are start minus due, in milliseconds. A tick that ran twice counts with its first start.
type Lags struct {
	P50 float64 `json:"lag_p50_ms"`
	P99 float64 `json:"lag_p99_ms"`
	Max float64 `json:"lag_max_ms"`
}

// Read reads a run from a file.
func Read(name string) (r Run, err error) {
	text, err := os.ReadFile(name) //nolint:gosec // G304: the file is named on the command line
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", name, err)
	}
	return r, nil
}

// Write writes the run into a file.
func (r Run) Write(name string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644) //nolint:gosec // G306: a public document
}

// Calm is the part of all cores that other processes may take: above it, a measurement reflects
// those processes more than the contender.
const Calm = 0.1

// Disturbed reports whether other processes took more than Calm.
func (r Run) Disturbed(row Row) bool { return r.others(row) > Calm }

// others returns the part of all cores that unmeasured processes took; 0 where it is unknown.
func (r Run) others(row Row) float64 {
	return row.OthersCPU / float64(max(1, r.Seconds*r.Machine.Cores))
}
