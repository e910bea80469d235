package locktest

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// unheard is a history of calls that nobody answered, many or few.
func unheard(calls int) []porcupine.Operation {
	var ops []porcupine.Operation
	for i := range calls {
		sent := time.Duration(i) * time.Millisecond
		ops = append(ops, porcupine.Operation{
			ClientId: i % historyClients, Input: question{kind: askAcquire, owner: 1 + i, ttl: historyTTL, sent: sent}, Call: int64(sent),
			Output: answer{came: time.Second}, Return: int64(time.Second),
		})
	}
	return ops
}

// TestNothingAnswered: what nobody answered says nothing of a lock, and is not taken for what one would have answered.
func TestNothingAnswered(t *testing.T) {
	for _, calls := range []int{1, historyClients * historySteps} {
		if checkHistory(t, unheard(calls), 1) {
			t.Errorf("%d calls without an answer pass as a whole history", calls)
		}
	}
}
