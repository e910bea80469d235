package locktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// mostWork bounds each of the two searches for an order: about a second of it. Each
// call without an answer doubles what there is to search.
const mostWork = 3_000_000

// checkHistory fails when no lock could have answered so. Where that cannot be
// seen of the whole history, it takes what was answered first, then more and more:
// so the story that it tells ends with the contradiction. What is left when a
// search grows too long goes unchecked, and it returns false; so it does where nothing was answered, of which nothing can be
// said.
func checkHistory(tb testing.TB, ops []porcupine.Operation, seed uint64) (whole bool) {
	tb.Helper()
	moments := answered(ops)
	if len(moments) == 0 {
		tb.Logf("seed %d: no call was answered", seed)
		return false
	}
	work := mostWork
	if search(ops, &work) == porcupine.Ok {
		return true
	}
	work = mostWork
	for i, end := range moments {
		part := until(ops, end)
		switch search(part, &work) {
		case porcupine.Illegal:
			tb.Fatalf("no lock could have answered so; seed %d:\n%s", seed, tell(part))
		case porcupine.Unknown:
			tb.Logf("seed %d: so few calls were answered that only the first %d of %d answers were checked", seed, i, len(moments))
			return false
		case porcupine.Ok:
		}
	}
	return true
}

// search looks for an order in which a lock could have answered so, until work is
// used up. It counts, for in a bubble no time passes meanwhile.
func search(ops []porcupine.Operation, work *int) porcupine.CheckResult {
	model := lockModel()
	step := model.StepContext
	model.StepContext = func(ctx context.Context, state, input, output any) (bool, any) {
		states := len(state.([]any))
		if *work -= 1 + states + states*states/8; *work < 0 {
			return false, state
		}
		return step(ctx, state, input, output)
	}
	switch {
	case porcupine.CheckOperations(model, ops):
		return porcupine.Ok
	case *work < 0:
		return porcupine.Unknown
	}
	return porcupine.Illegal
}

// answered returns when calls were answered, in order.
func answered(ops []porcupine.Operation) []int64 {
	var all []int64
	for _, op := range ops {
		if op.Output.(answer).kind != unknownAnswer {
			all = append(all, op.Return)
		}
	}
	slices.Sort(all)
	return all
}

// until returns the history as it stood at a moment: what was answered later was
// without an answer then. A call that only looks, and has no answer, is left out.
func until(ops []porcupine.Operation, end int64) []porcupine.Operation {
	var part []porcupine.Operation
	for _, op := range ops {
		if op.Call > end {
			continue
		}
		if op.Return > end {
			op.Return, op.Output = end, answer{kind: unknownAnswer}
		}
		if op.Output.(answer).kind == unknownAnswer && op.Input.(question).kind == askOwner {
			continue
		}
		part = append(part, op)
	}
	return part
}

// tell prints a history; what is near its end comes last, where a log that is cut
// off still shows it.
func tell(ops []porcupine.Operation) string {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) })
	var lines []string
	for _, unanswered := range []bool{true, false} {
		for _, op := range ops {
			if (op.Output.(answer).kind == unknownAnswer) == unanswered {
				lines = append(lines, line(op))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func line(op porcupine.Operation) string {
	end := fmt.Sprintf("%.3fms", float64(op.Return)/1e6)
	if op.Output.(answer).kind == unknownAnswer {
		end = "?"
	}
	return fmt.Sprintf("%.3fms to %s client %d: %v: %v", float64(op.Call)/1e6, end, op.ClientId, op.Input, op.Output)
}
