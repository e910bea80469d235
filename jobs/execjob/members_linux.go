package execjob

import (
	"bytes"
	"io/fs"
	"os"
	"strconv"
)

// onlyDead reports whether every member of the group to be seen has ended and waits for
// its parent to look. Signals do not tell: such a member takes them like a live one, and
// in a container whose process 1 does not care for orphans it stays for ever.
func onlyDead(pgid int) bool {
	proc := os.DirFS("/proc")
	stats, err := fs.Glob(proc, "[0-9]*/stat")
	if err != nil {
		return false // fs.Glob fails on a bad pattern only
	}
	dead := false
	for _, path := range stats {
		text, err := fs.ReadFile(proc, path)
		if err != nil {
			continue // it ended in between
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

// parseStat reads state and process group from "pid (name) state ppid pgrp ..."; the name
// may hold anything, closing brackets too.
func parseStat(text []byte) (state byte, pgid int, ok bool) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 3 || len(fields[0]) != 1 {
		return 0, 0, false
	}
	pgid, err := strconv.Atoi(string(fields[2]))
	return fields[0][0], pgid, err == nil
}
