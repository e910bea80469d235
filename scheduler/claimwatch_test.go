package scheduler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/ledger"
)

// claimWatch counts the answers to claims of the clients that it hooks, by their words. The answer to a question whether an
// earlier claim was granted counts as that.
type claimWatch struct {
	redis.Hook
	hash string

	mu    sync.Mutex
	words map[string]int
	most  int // claims in one request
}

const (
	answerStride = 4  // strings of the reply that answer one claim; the first is the word
	claimStride  = 13 // arguments of one claim, behind claimHead others: first its kind, as eighth the cursor that it is from
	claimHead    = 7

	question = "question" // a claim of a tick from no cursor; see sender
)

func newClaimWatch(t *testing.T) *claimWatch {
	t.Helper()
	for _, s := range ledger.Scripts() {
		if s.Name() == "claim" {
			return &claimWatch{hash: s.Hash(), words: make(map[string]int)}
		}
	}
	t.Fatal("the ledger has no script claim any more")
	return nil
}

func (w *claimWatch) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *claimWatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *claimWatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		script, ok := cmd.(*redis.Cmd)
		if !ok || err != nil || len(cmd.Args()) < 2 || fmt.Sprint(cmd.Args()[1]) != w.hash {
			return err
		}
		answers, _ := script.Slice()
		w.mu.Lock()
		defer w.mu.Unlock()
		for i := 0; i < len(answers); i += answerStride {
			w.words[wordOf(cmd.Args(), i/answerStride, fmt.Sprint(answers[i]))]++
		}
		w.most = max(w.most, len(answers)/answerStride)
		return err
	}
}

// wordOf is what the answer to claim i of a request counts as.
func wordOf(request []any, i int, word string) string {
	keys, known := request[2].(int)
	if args := len(request) - 3 - keys - claimHead; !known || args <= 0 || args%claimStride != 0 {
		panic(fmt.Sprint("not the arguments of a claim any more: ", request))
	}
	claim := request[3+keys+claimHead+claimStride*i:]
	if fmt.Sprint(claim[0]) == "t" && fmt.Sprint(claim[7]) == "0" && word != "granted" {
		return question
	}
	return word
}

// take returns the counts so far and begins anew.
func (w *claimWatch) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	words := w.words
	w.words = make(map[string]int)
	return words
}

// inVain is how many claims were asked in vain. Questions are not: who has heard no answer must ask once whether there was one.
func inVain(words map[string]int) int {
	n := 0
	for word, count := range words {
		if !strings.Contains(" granted opened passed skipped "+question+" ", " "+word+" ") {
			n += count
		}
	}
	return n
}
