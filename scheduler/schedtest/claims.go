package schedtest

import (
	"strconv"
	"strings"
)

// The request for a batch of claims, as the head of scripts/claim.lua defines it. After the keys
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
