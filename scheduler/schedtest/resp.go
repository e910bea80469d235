package schedtest

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // G505: Redis names scripts by it
	"encoding/hex"
	"maps"
	"strconv"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// commands reads the complete commands at the head of b, each an array of bulk strings as every
// client sends it, and returns the rest.
func commands(b []byte) (all [][]string, rest []byte) {
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

// bulks are the bulk strings in a reply, in their order, whatever it nests them in.
func bulks(reply []byte) []string {
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

// scriptOf is the SHA-1 of the script that a command calls, "" when it calls none.
func scriptOf(args []string) string {
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

// The request for a batch of claims, as the head of claim/claim.lua defines it. After the keys
// come claimHead arguments for the batch, and then each claim in one of two forms, with claimArgs
// or claimPlain arguments. claimJob to claimTick index the longer form. claimStride strings answer
// a claim.
const (
	claimHead   = 8
	claimArgs   = 14
	claimPlain  = 6
	claimJob    = 1
	claimRun    = 3
	claimMode   = 5
	claimTick   = 10
	claimStride = 4
	// In the record of a run, which answers the claim of a pending one.
	recordTick    = 4
	recordShard   = 5
	recordShards  = 6
	recordRequest = 15
	recordOf      = 19
)

// claims are the claims of a request, all in the longer form.
func claims(args []string) (all [][]string) {
	keys, err := strconv.Atoi(args[2])
	if err != nil {
		return nil
	}
	for i := 3 + keys + claimHead; i < len(args); {
		if terms := strings.Split(args[i], "|"); len(terms) == 4 && i+claimPlain <= len(args) {
			job, digest, run, tick, next := args[i+1], args[i+2], args[i+3], args[i+4], args[i+5]
			all = append(all, []string{"t", job, digest, run, terms[0], terms[1], terms[2], "0", tick, "", tick, next, terms[3], ""})
			i += claimPlain
			continue
		}
		if i+claimArgs > len(args) {
			break
		}
		all = append(all, args[i:i+claimArgs])
		i += claimArgs
	}
	return all
}

// claimAnswers returns the answers to n claims, four strings each as in the script's head; any
// other reply unchanged.
func claimAnswers(words []string, n int) []string {
	if len(words) < 2 || refused(words) {
		return words
	}
	tokens, rest := strings.Split(words[0], ","), words[2:]
	if len(tokens) != n {
		return words
	}
	var all []string
	for _, token := range tokens {
		switch {
		case token != "":
			all = append(all, "granted", token, "", "")
		case len(rest) >= claimStride:
			all, rest = append(all, rest[:claimStride]...), rest[claimStride:]
		}
	}
	return all
}

// scriptsOf returns the names (claim, settle, ...) of the scripts that the simulation recognises on
// the wire, by SHA-1.
func scriptsOf(p Plan) map[string]string {
	all := maps.Clone(p.scripts)
	if all == nil {
		all = make(map[string]string)
	}
	for _, s := range ledger.Scripts() {
		all[s.Hash()] = s.Name()
	}
	return all
}
