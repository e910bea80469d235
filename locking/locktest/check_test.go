package locktest

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// noAnswers is a history of calls without an answer.
func noAnswers(calls int) []porcupine.Operation {
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

// TestNothingAnswered: a history without an answer proves nothing, and must not pass as checked.
func TestNothingAnswered(t *testing.T) {
	for _, calls := range []int{1, historyClients * historySteps} {
		if checkHistory(t, lockModel(), noAnswers(calls), 1) {
			t.Errorf("%d calls without an answer pass as a whole history", calls)
		}
	}
}
