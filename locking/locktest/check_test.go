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

// TestRenewalOfAMinority: a renewal without an answer may have reached fewer masters than a quorum needs. These masters
// report the lease as held after a majority has let it lapse, and the lock is granted beside them. A single store cannot answer so.
func TestRenewalOfAMinority(t *testing.T) {
	for _, loose := range []bool{true, false} {
		const ms = time.Millisecond
		call := func(client int, q question, sent time.Duration, a answer, came time.Duration) porcupine.Operation {
			q.ttl, q.sent, q.loose, a.asked, a.came = historyTTL, sent, loose, sent, came
			return porcupine.Operation{ClientId: client, Input: q, Call: int64(sent), Output: a, Return: int64(came)}
		}
		ops := []porcupine.Operation{
			call(0, question{kind: askAcquire, owner: 11}, 520*ms, answer{kind: granted, token: 475}, 528*ms),
			call(0, question{kind: askRenew, owner: 11, token: 475}, 606*ms, answer{}, 800*ms),
			call(1, question{kind: askAcquire, owner: 18}, 735*ms, answer{kind: heldBy, owner: 11}, 744*ms),
			call(0, question{kind: askAcquire, owner: 11}, 750*ms, answer{kind: granted, token: 478}, 773*ms),
		}
		if got := porcupine.CheckOperations(lockModel(), ops); got != loose {
			t.Errorf("of a quorum %v: the model accepts %v", loose, got)
		}
	}
}
