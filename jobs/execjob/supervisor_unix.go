//go:build unix

package execjob

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchScript is the supervisor of a group. It reads the group's number, and then waits for the end of
// its input, which comes when this process has died. It is in a group of its own, so that signals to
// this process' group do not reach it.
const watchScript = `trap '' HUP INT QUIT TERM
read -r group || exit 0
read -r _
kill -TERM "-$group"; kill -CONT "-$group"
sleep 0.5
kill -KILL "-$group"`

// supervisor is a process that ends a group when this process dies before it has ended the group.
type supervisor struct {
	shell *exec.Cmd
	pipe  *os.File // its input
}

// newSupervisor starts a supervisor; nil on a system without a shell.
func newSupervisor() *supervisor {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close()
	shell := exec.Command("/bin/sh", "-c", watchScript)
	shell.Stdin, shell.Dir, shell.Env = r, "/", []string{"PATH=" + os.Getenv("PATH")}
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if shell.Start() != nil {
		w.Close()
		return nil
	}
	return &supervisor{shell, w}
}

// watch gives the supervisor the group's number. It has no effect when the supervisor was killed.
func (s *supervisor) watch(pgid int) {
	if s != nil {
		_, _ = s.pipe.WriteString(strconv.Itoa(pgid) + "\n")
	}
}

// end ends the supervisor, and not the group.
func (s *supervisor) end() {
	if s == nil {
		return
	}
	_ = s.shell.Process.Kill() // before its input ends
	_ = s.shell.Wait()
	s.pipe.Close()
}
