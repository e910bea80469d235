//go:build !unix

package execjob

import (
	"os"
	"os/exec"
	"time"
)

func ownGroup(*exec.Cmd) {}

// group is the command alone: this system has no process groups, and no gentle signal.
type group struct{ process *os.Process }

func newGroup(cmd *exec.Cmd) *group { return &group{process: cmd.Process} }

func (g *group) terminate() { g.kill() }

// kill ends the command. An error means that it has ended by itself.
func (g *group) kill() { _ = g.process.Kill() }

func (g *group) clear(time.Time) error { return nil }
