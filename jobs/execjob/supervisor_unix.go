//go:build unix

package execjob

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watch is the supervisor of a group. It reads the group's number from this process, and then waits for the end of its input,
// which comes when this process has died. A signal to this process' own group does not reach it.
const watchScript = `trap '' HUP INT QUIT TERM
read -r group || exit 0
read -r _
kill -TERM "-$group"; kill -CONT "-$group"
sleep 0.5
kill -KILL "-$group"`

// supervisor is a process that ends a group when this process dies without having done so.
type supervisor struct {
	shell *exec.Cmd
	pipe  *os.File // its input
}

// newSupervisor starts one; nil on a system without a shell.
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

// guard names the group. A supervisor that was ended by somebody guards nothing.
func (s *supervisor) watch(pgid int) {
	if s != nil {
		_, _ = s.pipe.WriteString(strconv.Itoa(pgid) + "\n")
	}
}

// end is for when the group has ended, or is left to itself.
func (s *supervisor) end() {
	if s == nil {
		return
	}
	_ = s.shell.Process.Kill() // before its input ends
	_ = s.shell.Wait()
	s.pipe.Close()
}
