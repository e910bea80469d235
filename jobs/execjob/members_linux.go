package execjob

import (
	"bytes"
	"io/fs"
	"os"
	"strconv"
)

// onlyDead reports whether all visible members of the group have ended and wait to be reaped. Signals
// do not show this: such a member accepts them, and stays for ever in a container whose process 1
// does not reap orphans.
func onlyDead(pgid int) bool {
	proc := os.DirFS("/proc")
	stats, err := fs.Glob(proc, "[0-9]*/stat")
	if err != nil {
		return false // never: fs.Glob fails for a bad pattern only
	}
	dead := false
	for _, path := range stats {
		text, err := fs.ReadFile(proc, path)
		if err != nil {
			continue // it has ended since
		}
		state, group, ok := parseStat(text)
		if !ok || group != pgid {
			continue
		}
		if state != 'Z' && state != 'X' {
			return false
		}
		dead = true
	}
	return dead
}

// parseStat returns state and process group from "pid (name) state ppid pgrp ...". The name may
// contain any text, also closing brackets.
func parseStat(text []byte) (state byte, pgid int, ok bool) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 3 || len(fields[0]) != 1 {
		return 0, 0, false
	}
	pgid, err := strconv.Atoi(string(fields[2]))
	return fields[0][0], pgid, err == nil
}
