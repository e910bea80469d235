//go:build !unix

package lock

import (
	"os"
	"os/exec"

	"github.com/escapement/escapement/jobs/execjob"
)

func newGroup(child *exec.Cmd) *execjob.Group { return execjob.NewGroup(child) }

func childCode(state *os.ProcessState) int { return state.ExitCode() }
