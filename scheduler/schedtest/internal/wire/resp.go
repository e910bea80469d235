package wire

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // G505: Redis names scripts by it
	"encoding/hex"
	"strconv"
	"strings"
)

// Commands reads the complete commands at the head of b, each an array of bulk strings as every
// client sends it, and returns the rest.
func Commands(b []byte) (all [][]string, rest []byte) {
	for {
		args, after, ok := command(b)
		if !ok {
			return all, b
		}
		all, b = append(all, args), after
	}
}

func command(b []byte) (args []string, rest []byte, ok bool) {
	n, b, ok := header(b, '*')
	if !ok {
		return nil, nil, false
	}
	args = make([]string, n)
	for i := range args {
		var size int
		if size, b, ok = header(b, '$'); !ok || len(b) < size+2 {
			return nil, nil, false
		}
		args[i], b = string(b[:size]), b[size+2:]
	}
	return args, b, true
}

// header reads a line such as "*3".
func header(b []byte, kind byte) (n int, rest []byte, ok bool) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 1 || b[0] != kind {
		return 0, nil, false
	}
	n, err := strconv.Atoi(string(b[1:end]))
	return n, b[end+2:], err == nil
}

// Bulks are the bulk strings in a reply, in their order, whatever it nests them in.
func Bulks(reply []byte) []string {
	var all []string
	for len(reply) > 0 {
		end := bytes.Index(reply, []byte("\r\n"))
		if end < 0 {
			break
		}
		line, rest := reply[:end], reply[end+2:]
		if line[0] == '$' {
			if size, err := strconv.Atoi(string(line[1:])); err == nil && size >= 0 && len(rest) >= size+2 {
				all, rest = append(all, string(rest[:size])), rest[size+2:]
			}
		}
		reply = rest
	}
	return all
}

// ScriptOf is the SHA-1 of the script that a command calls, "" when it calls none.
func ScriptOf(args []string) string {
	if len(args) < 2 {
		return ""
	}
	switch strings.ToUpper(args[0]) {
	case "EVALSHA":
		return args[1]
	case "EVAL":
		sum := sha1.Sum([]byte(args[1])) //nolint:gosec // G401: as above
		return hex.EncodeToString(sum[:])
	}
	return ""
}
