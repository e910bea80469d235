package lock

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
)

// takeTerminal lets a command that a person runs at a terminal read from it: only the terminal's
// foreground group may. A shell does the same, and takes the terminal back when we have ended.
// Stopping the command from the keyboard is ignored, because a stopped command would keep the lock
// without limit.
func takeTerminal(child *exec.Cmd) {
	me, err := readStat("/proc/self/stat")
	if err != nil || me.group != os.Getpid() || me.foreground != me.group || !me.talksTo(child.Stdin) || !me.talksTo(child.Stdout) {
		return // a script's, or part of a pipe
	}
	in, ok := child.Stdin.(*os.File)
	if !ok {
		return
	}
	signal.Ignore(syscall.SIGTSTP)
	child.SysProcAttr.Foreground, child.SysProcAttr.Ctty = true, int(in.Fd())
}

// procStat is a part of the fields of /proc/PID/stat.
type procStat struct {
	group, foreground int // foreground: the group that its terminal listens to
	terminal          int // its terminal's number, 0 for none
}

// talksTo reports whether a stream is the process's terminal.
func (s procStat) talksTo(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.terminal > 0 && sys.Rdev == uint64(s.terminal)
}

// readStat reads "pid (name) state ppid pgrp session tty tpgid ..."; the name may contain any
// character.
func readStat(file string) (s procStat, err error) {
	text, err := os.ReadFile(file) //nolint:gosec // always below /proc
	if err != nil {
		return s, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 6 {
		return s, os.ErrInvalid
	}
	if s.group, err = strconv.Atoi(string(fields[2])); err != nil {
		return s, err
	}
	if s.terminal, err = strconv.Atoi(string(fields[4])); err != nil {
		return s, err
	}
	s.foreground, err = strconv.Atoi(string(fields[5]))
	return s, err
}
