package execjob

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/escapement/escapement/jobs/boundedfile"
	"github.com/escapement/escapement/jobs/internal/machine"
)

const (
	// runDirPrefix begins the names of the directories of runs.
	runDirPrefix = "escapement-run-"
	// youngDir is the age below which a directory is left alone: its owner may not have locked it
	// yet.
	youngDir = time.Minute
	// sweepEvery is the shortest time between two looks for directories of killed nodes. One look
	// is not enough: a node that starts soon after another was killed finds young directories.
	sweepEvery = 10 * time.Minute
)

// runDir is the directory of one run's files, which only the node's user can read. It is locked as
// long as its node lives, so that another process can recognize the directory of a node that was
// killed, and removes it.
type runDir struct {
	path string
	lock *os.File // nil where the system has no such locks
}

// sweeps are the looks of this process for directories of killed nodes, as it makes directories.
var sweeps sweepTimer

// sweepTimer keeps the looks sweepEvery apart.
type sweepTimer struct {
	mu   sync.Mutex
	last time.Time // zero: never
}

// due reports whether a look is due, and takes it as made.
func (e *sweepTimer) due(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.last.IsZero() && now.Sub(e.last) < sweepEvery {
		return false
	}
	e.last = now
	return true
}

func newRunDir() (*runDir, error) {
	if now := time.Now(); sweeps.due(now) {
		sweepRunDirs(os.TempDir(), now.Add(-youngDir))
	}
	path, err := os.MkdirTemp("", runDirPrefix+"*")
	if err != nil {
		return nil, machine.Fault(fmt.Errorf("make a directory for its files: %w", err))
	}
	lock, _ := lockDir(path) // without a lock, the directory is not removed when this process is killed
	return &runDir{path, lock}, nil
}

// remove removes the directory and its content.
func (d *runDir) remove() error {
	err := os.RemoveAll(d.path)
	if d.lock != nil {
		d.lock.Close()
	}
	return err
}

// sweepRunDirs removes the directories of processes that have ended, as far as this process may.
// Directories changed after before stay.
func sweepRunDirs(temp string, before time.Time) {
	entries, err := boundedfile.ReadDir(temp)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), runDirPrefix) || !e.IsDir() {
			continue
		}
		info, err := e.Info()
		if err != nil || info.ModTime().After(before) || info.Mode().Perm() != 0o700 {
			continue
		}
		path := filepath.Join(temp, e.Name())
		if lock, err := lockDir(path); err == nil && lock != nil {
			_ = os.RemoveAll(path) // another user's files stay
			lock.Close()
		}
	}
}
