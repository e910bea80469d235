package locktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/escapement/escapement/locking"
)

// maxWork bounds each of the two searches for an order: about a second. Each call without an answer doubles the
// search.
const maxWork = 3_000_000

// checkHistory fails when no lock could have answered so. When the whole history is too much to search, or fails, it
// checks growing parts of it, so that the printed calls end with the contradiction. False: a part was not checked,
// or no call was answered.
func checkHistory(tb testing.TB, model porcupine.Model, ops []porcupine.Operation, seed uint64) (whole bool) {
	tb.Helper()
	moments := answered(ops)
	if len(moments) == 0 {
		tb.Logf("seed %d: no call was answered", seed)
		return false
	}
	work := maxWork
	if search(model, ops, &work) == porcupine.Ok {
		return true
	}
	work = maxWork
	for i, end := range moments {
		part := until(ops, end)
		switch search(model, part, &work) {
		case porcupine.Illegal:
			tb.Fatalf("no lock could have answered so; seed %d:\n%s", seed, describe(part))
		case porcupine.Unknown:
			tb.Logf("seed %d: so few calls were answered that only the first %d of %d answers were checked", seed, i, len(moments))
			return false
		case porcupine.Ok:
		}
	}
	return true
}

// search searches an order in which a lock could have answered so, until work is used up. It counts steps, because
// in a bubble no time passes.
func search(model porcupine.Model, ops []porcupine.Operation, work *int) porcupine.CheckResult {
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

// modelOf returns the model of a share.
func modelOf(share locking.Share) porcupine.Model {
	switch {
	case share == locking.Share{}:
		return lockModel()
	case share.Mode != locking.Exclusive:
		return shareModel(0)
	}
	return shareModel(share.Permits)
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

// until returns the history up to end: calls that were answered later have no answer. Reads without an answer are
// left out.
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

// describe prints a history, the latest calls last, where a truncated log still shows them.
func describe(ops []porcupine.Operation) string {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) })
	var lines []string
	for _, unanswered := range []bool{true, false} {
		for _, op := range ops {
			if (op.Output.(answer).kind == unknownAnswer) == unanswered {
				lines = append(lines, describeCall(op))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func describeCall(op porcupine.Operation) string {
	end := fmt.Sprintf("%.3fms", float64(op.Return)/1e6)
	if op.Output.(answer).kind == unknownAnswer {
		end = "?"
	}
	return fmt.Sprintf("%.3fms to %s client %d: %v: %v", float64(op.Call)/1e6, end, op.ClientId, op.Input, op.Output)
}
