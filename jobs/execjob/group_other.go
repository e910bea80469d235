//go:build !unix

package execjob

import (
	"os"
	"os/exec"
	"time"
)

// Group is a command alone: this system has no process groups, and no gentle signal.
type Group struct{ cmd *exec.Cmd }

// NewGroup is for a command that was not started yet.
func NewGroup(cmd *exec.Cmd) *Group { return &Group{cmd} }

// Start starts the command. It outlives this process: this system has nothing to end it.
func (g *Group) Start() error { return g.cmd.Start() }

// Close is for when the command was waited for.
func (g *Group) Close() {}

// Signal ends the command.
func (g *Group) Signal(os.Signal) { g.Kill() }

// Terminate ends the command.
func (g *Group) Terminate() { g.Kill() }

// Kill ends the command. An error means that it has ended by itself.
func (g *Group) Kill() { _ = g.cmd.Process.Kill() }

// Alive is false: nothing is known of what the command left behind.
func (g *Group) Alive() bool { return false }

func (g *Group) clear(time.Time) error { return nil }
