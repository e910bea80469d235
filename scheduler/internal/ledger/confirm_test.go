package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// TestClaimIsConfirmed: a grant on too few replicas is answered as unconfirmed, also when it is
// repeated over a connection that wrote nothing, and no more once the replicas have it.
func TestClaimIsConfirmed(t *testing.T) {
	server, replicas := redistest.StartReplicas(t, 2)
	open := func() *ledger.Ledger {
		return must(ledger.Join(t.Context(), server.Client(t), ledger.Config{Namespace: "c", Partitions: 1})).Confirming(2)
	}
	l := open()
	now := func() int64 {
		at, _, err := l.Time(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMilli()
	}
	request := func(l *ledger.Ledger, i int) claim.Answer {
		t.Helper()
		job, at := fmt.Sprint("job-", i), now()-1000
		defined := must(define.Define(t.Context(), l, at+1000, []define.Definition{{Job: job, Digest: "d-second", Text: []byte("{}"), Cursor: at}}))
		c := claim.Claim{Job: job, Digest: "d-second", Run: "run-" + job, TTL: time.Minute, From: defined[0].Cursor, Tick: defined[0].Cursor, Next: defined[0].Cursor + 3600_000}
		got := must(claim.Send(t.Context(), l, node, now(), []claim.Claim{c}))[0]
		if got.Verdict != claim.Granted {
			t.Fatalf("%s: %+v", job, got)
		}
		return got
	}
	want := func(what string, got claim.Answer, confirmed bool) {
		t.Helper()
		if (got.Unconfirmed == nil) != confirmed || !confirmed && !errors.Is(got.Unconfirmed, locking.ErrUnreachable) {
			t.Errorf("%s: %v; want confirmed %v", what, got.Unconfirmed, confirmed)
		}
		if err := claim.Confirmed(t.Context(), l, 0); (err == nil) != confirmed {
			t.Errorf("%s: a probe says %v; want confirmed %v", what, err, confirmed)
		}
	}
	if err := l.Client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	want("both replicas follow", request(l, 1), true)
	if err := replicas[0].Pause(); err != nil {
		t.Fatal(err)
	}
	first := request(l, 2)
	want("one of two replicas follows", first, false)
	again := request(open(), 2)
	want("the same claim again, over another connection", again, false)
	if again.Token != first.Token {
		t.Errorf("it was granted anew: %+v, then %+v", first, again)
	}
	if err := replicas[0].Resume(); err != nil {
		t.Fatal(err)
	}
	want("both replicas follow again", request(l, 2), true)
	if got := must(claim.Send(t.Context(), l.Confirming(0), node, now(), []claim.Claim{{Job: "job-1", Digest: "d-second", Run: "r", TTL: time.Minute, From: 1, Tick: 1, Next: 2}})); got[0].Unconfirmed != nil {
		t.Errorf("nobody wants to wait, but %v", got[0].Unconfirmed)
	}
	if left := must(query.UnknownKeys(t.Context(), l)); len(left) > 0 {
		t.Errorf("keys that this version has no use for: %v", left)
	}
}
