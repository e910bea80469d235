//go:build unix

package execjob

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/escapement/escapement/jobs"
)

// The supervisor of a group is a shell. It reads lines "GROUP LEFT": the group's number, "-" before
// the command is started; and the seconds after which the group ends unless another line comes,
// empty for no limit. The shell ends the group when its input ends, because this process has died,
// and when the time is over, because this process stands still. Its arguments are the seconds from
// SIGTERM to SIGKILL and the group's mark. The shell is in a group of its own, so that signals to
// this process' group do not reach it.
//
// A process that dies, or stops, while it starts the command has not sent the group's number. The
// command and its processes are then found by the mark in their environment, where the system shows
// that.
const watchHead = `trap '' HUP INT QUIT TERM
gap=$1 mark=$2 group=- left=
finish() {
	if [ "$group" = - ]; then
		group=
		for file in $(grep -ls "$mark" /proc/[0-9]*/environ 2>/dev/null); do
			read -r stat <"${file%environ}stat" && set -- ${stat##*) } && group="$group $3"
		done
	fi
	for g in $group; do kill -TERM "-$g"; kill -CONT "-$g"; done
	sleep "$gap"
	for g in $group; do kill -KILL "-$g"; done
}
`

// watchTimed is for a shell whose read has a timeout.
const watchTimed = watchHead + `while read -r ${left:+-t "$left"} g l; do group=$g left=$l; done
finish`

// watchSlept is for any other shell: a process sleeps for each line.
const watchSlept = watchHead + `while
	timer=
	if [ -n "$left" ]; then { sleep "$left" && finish; } & timer=$!; fi
	read -r g l
do
	group=$g left=$l
	[ -z "$timer" ] || kill -KILL "$timer"
done
finish`

// watchShell is a shell and the script that it can run.
type watchShell struct{ path, script string }

// shells are the paths of shells. The first one whose read has a timeout is taken, else the first
// one.
var shells = []string{"/bin/sh", "/bin/bash"}

// chosenShell is the shell of this process' supervisors.
var chosenShell struct {
	mu    sync.Mutex
	known bool
	shell watchShell // without a path: there is none
}

// findShell returns the shell for supervisors. The error is the reason why no shell could be
// started now; on a system without a shell the path is "".
func findShell() (watchShell, error) {
	c := &chosenShell
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		return c.shell, nil
	}
	found := watchShell{}
	for _, path := range shells {
		timed, err := readsTimed(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
			continue
		case err != nil:
			return found, err
		}
		if timed {
			found = watchShell{path, watchTimed}
			break
		}
		if found.path == "" {
			found = watchShell{path, watchSlept}
		}
	}
	c.known, c.shell = true, found
	return found, nil
}

// probeWithin bounds the question whether a shell's read has a timeout.
const probeWithin = 10 * time.Second

// readsTimed reports whether the read of a shell takes a timeout with a fraction. An error means
// that the shell was not started.
func readsTimed(path string) (bool, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer r.Close()
	_, err = w.WriteString("x\n")
	w.Close()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeWithin)
	defer cancel()
	shell := exec.CommandContext(ctx, path, "-c", "read -r -t 0.5 x")
	shell.Stdin, shell.Dir, shell.Env = r, "/", []string{}
	err = shell.Run()
	if errors.As(err, new(*exec.ExitError)) {
		return false, nil
	}
	return err == nil, err
}

// supervisor is a process that ends a group when this process dies or stands still before it has
// ended the group.
type supervisor struct {
	shell   *exec.Cmd
	pipe    *os.File // its input
	lease   jobs.Lease
	stop    chan struct{}
	feeding sync.WaitGroup
}

// newMark returns a text that no other process has in its environment.
func newMark() string { return rand.Text() }

// newSupervisor starts a supervisor of a group that is started next, and that ends with lease; nil
// on a system without a shell. An error means that this process can start none now.
func newSupervisor(lease jobs.Lease, mark string) (*supervisor, error) {
	found, err := findShell()
	if err != nil || found.path == "" {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	gap := killGap
	if lease != nil {
		gap = min(gap, lease.Margin()/2)
	}
	args := []string{"-c", found.script, "escapement", seconds(gap), mark}
	shell := exec.Command(found.path, args...)
	shell.Stdin, shell.Dir, shell.Env = r, "/", []string{"PATH=" + os.Getenv("PATH")}
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		w.Close()
		return nil, err
	}
	s := &supervisor{shell: shell, pipe: w, lease: lease, stop: make(chan struct{})}
	s.send("-", s.left())
	return s, nil
}

// left is how long the group may go on if this process stands still from now on; 0 for ever.
func (s *supervisor) left() time.Duration {
	if s.lease == nil {
		return 0
	}
	return max(s.lease.Left(), time.Millisecond)
}

// send sends the supervisor a line. It has no effect when the supervisor was killed. It does not
// wait: a supervisor that was stopped reads nothing, and its pipe is full in the end. A deadline
// would lose lines where this process does not run for as long.
func (s *supervisor) send(group string, left time.Duration) {
	line := group
	//guard:standstill-ends P4 the supervisor of a command has the time after which the command ends, also when this process stands still
	if left > 0 {
		line += " " + seconds(left)
	}
	conn, err := s.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Write(func(fd uintptr) bool {
		for {
			if _, err := syscall.Write(int(fd), []byte(line+"\n")); !errors.Is(err, syscall.EINTR) {
				return true
			}
		}
	})
}

// watch gives the supervisor the group's number, and from now on the time that the lease has.
func (s *supervisor) watch(pgid int) {
	if s == nil {
		return
	}
	group := strconv.Itoa(pgid)
	s.send(group, s.left())
	if s.lease != nil {
		s.feeding.Go(func() { s.feed(group) })
	}
}

// feedFloor is the shortest pause between two looks at the lease.
const feedFloor = 50 * time.Millisecond

// feed sends each renewal of the lease to the supervisor, until the lease is over or stop is
// closed. It looks when half of the time has passed, which is one look or two for a renewal.
func (s *supervisor) feed(group string) {
	left, at := s.left(), time.Now()
	for {
		timer := time.NewTimer(max(left/2, feedFloor))
		select {
		case <-timer.C:
		case <-s.stop:
			timer.Stop()
			return
		}
		was := left - time.Since(at)
		left, at = s.left(), time.Now()
		//guard:standstill-renewed P4 the supervisor of a command hears of each renewal, and of the lease's end
		if left > was+feedFloor || left <= time.Millisecond {
			s.send(group, left)
		}
		if left <= time.Millisecond { // it is over: this process ends the command too
			return
		}
	}
}

// end ends the supervisor, and not the group.
func (s *supervisor) end() {
	if s == nil {
		return
	}
	close(s.stop)
	s.feeding.Wait()
	_ = syscall.Kill(-s.shell.Process.Pid, syscall.SIGKILL) // before its input ends; with its sleeping child
	_ = s.shell.Wait()
	s.pipe.Close()
}

// seconds is a duration as a shell takes it.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(max(d, time.Millisecond).Seconds(), 'f', 3, 64)
}
