//go:build unix

package lock

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/escapement/escapement/jobs/execjob"
)

// newGroup makes the command, which was not started yet, the leader of a group.
func newGroup(child *exec.Cmd) *execjob.Group {
	g := execjob.NewGroup(child)
	takeTerminal(child)
	return g
}

// childCode is how a shell shows a command's end.
func childCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalCode(status.Signal())
	}
	return state.ExitCode()
}
