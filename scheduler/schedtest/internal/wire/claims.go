package wire

import (
	"strconv"
	"strings"
)

// The request for a batch of claims, as the head of claim.lua defines it. After the keys come
// claimHead arguments for the batch, and then each claim in one of two forms, with claimArgs or
// claimPlain arguments. An answer has answerWords words.
const (
	claimHead   = 8
	claimArgs   = 14
	claimPlain  = 6
	answerWords = 4
)

// Claim is a claim of a request.
type Claim struct {
	Job, Run string
	Overlap  string // the job's policy: s, q, r or a
	Tick     string // ms
}

// Claims are the claims of a request.
func Claims(args []string) (all []Claim) {
	keys, err := strconv.Atoi(args[2])
	if err != nil {
		return nil
	}
	for i := 3 + keys + claimHead; i < len(args); {
		if terms := strings.Split(args[i], "|"); len(terms) == 4 && i+claimPlain <= len(args) {
			all = append(all, Claim{args[i+1], args[i+3], terms[1], args[i+4]})
			i += claimPlain
			continue
		}
		if i+claimArgs > len(args) {
			break
		}
		all = append(all, Claim{args[i+1], args[i+3], args[i+5], args[i+10]})
		i += claimArgs
	}
	return all
}

// Answer is the answer to a claim.
type Answer struct{ Verdict, Token, Detail, Record string }

// Answers are the answers in the words of ClaimAnswers.
func Answers(words []string) (all []Answer) {
	for ; len(words) >= answerWords; words = words[answerWords:] {
		all = append(all, Answer{words[0], words[1], words[2], words[3]})
	}
	return all
}

// ClaimAnswers returns the answers to n claims, four words each as in the script's head; any other
// reply unchanged.
func ClaimAnswers(words []string, n int) []string {
	if len(words) < 2 || Refused(words) {
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
		case len(rest) >= answerWords:
			all, rest = append(all, rest[:answerWords]...), rest[answerWords:]
		}
	}
	return all
}

// Refused reports whether a script did nothing, because the caller was mistaken about Redis.
func Refused(words []string) bool {
	return len(words) == 2 && (words[0] == "clock" || words[0] == "server")
}

// Record is the record of a run, which answers the claim of a pending run.
type Record struct {
	Tick          string // ms
	Shard, Shards int
	Request       string // of the request by hand that the run goes back to; "" for none
	Of            string // the id of the open tick
}

// ReadRecord reads the record of a run. Without a record it returns that of a run of one shard.
func ReadRecord(text string) (r Record, found bool) {
	f := strings.Split(text, "|")
	if len(f) < 20 {
		return Record{Shards: 1}, false
	}
	r = Record{Tick: f[4], Request: f[15], Of: f[19]}
	r.Shard, _ = strconv.Atoi(f[5])
	r.Shards, _ = strconv.Atoi(f[6])
	return r, true
}
