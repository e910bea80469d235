//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// group is the command alone: this system has no process groups, and no gentle signal.
type group struct{ child *exec.Cmd }

func newGroup(child *exec.Cmd) *group { return &group{child} }

func (g *group) pass(os.Signal) { g.kill() }

func (g *group) terminate() { g.kill() }

// kill ends the command. An error means that it has ended by itself.
func (g *group) kill() { _ = g.child.Process.Kill() }

func (g *group) alive() bool { return false }

func childCode(state *os.ProcessState) int { return state.ExitCode() }
