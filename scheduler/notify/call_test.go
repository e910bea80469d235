package notify

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A function that ignores its context is left behind and named, once. It holds up neither the end
// of a term, which keeps the notifier's lock, nor the other targets; and it is not called a second
// time meanwhile.
func TestDeafTarget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		calls, release := 0, make(chan struct{})
		deaf := Target{Name: "deaf", Func: func(context.Context, Message) error { calls++; <-release; return nil }}
		well := Target{Name: "well", Func: func(context.Context, Message) error { return nil }}
		c := newCallers(slog.New(slog.NewTextHandler(&log, nil)))
		term := func() *post { return newPost(t.Context(), Config{Targets: []Target{deaf, well}}, c) }
		p, began := term(), time.Now()
		p.send(deaf, Message{ID: "1"})
		p.send(well, Message{ID: "2"})
		if r := <-p.results; r.target != "well" || r.err != nil || time.Since(began) != 0 {
			t.Errorf("%+v after %s", r, time.Since(began))
		}
		p.wait()
		if took := time.Since(began); took != leaveAfter {
			t.Errorf("the end of the term took %s, want %s", took, leaveAfter)
		}
		p = term()
		p.send(deaf, Message{ID: "1"})
		if r := <-p.results; !errors.Is(r.err, errLeft) {
			t.Errorf("%+v, want %v", r, errLeft)
		}
		if calls != 1 || strings.Count(log.String(), "target=deaf") != 1 || !strings.Contains(log.String(), "does not return") {
			t.Errorf("%d calls, logged %s", calls, log.String())
		}
		close(release)
		synctest.Wait()
		p = term()
		p.send(deaf, Message{ID: "1"})
		if r := <-p.results; r.err != nil || calls != 2 {
			t.Errorf("when it has returned: %+v, %d calls", r, calls)
		}
		p.wait()
	})
}

// The time of one try bounds a call, also before the end of the term.
func TestDeafTargetIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, began := make(chan struct{}), time.Now()
		deaf := Target{Name: "deaf", Func: func(context.Context, Message) error { <-release; return nil }}
		err := newCallers(slog.New(slog.DiscardHandler)).call(t.Context(), deaf, Message{})
		if took := time.Since(began); !errors.Is(err, errNoAnswer) || took != webhookTime+leaveAfter {
			t.Errorf("%v after %s", err, took)
		}
		close(release)
		synctest.Wait()
	})
}
