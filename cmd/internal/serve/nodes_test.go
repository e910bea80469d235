package serve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/scheduler"
)

// TestTogether ends all parts when one returns, waits for the slow part and returns both errors.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, late := errors.New("first"), errors.New("late")
		begin := time.Now()
		err := together(t.Context(),
			func(context.Context) error { <-time.After(time.Second); return first },
			func(ctx context.Context) error { <-ctx.Done(); <-time.After(time.Minute); return late },
			func(ctx context.Context) error { <-ctx.Done(); return nil },
		)
		if !errors.Is(err, first) || !errors.Is(err, late) {
			t.Errorf("got %v, want both errors", err)
		}
		if took := time.Since(begin); took != time.Second+time.Minute {
			t.Errorf("took %v, want until the last part returned", took)
		}
	})
}

// TestSignals sends signals after the given pauses to a part that needs a minute to stop.
func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pauses []time.Duration
		want   error
		took   time.Duration
	}{
		{"none", nil, nil, time.Hour},
		{"one", []time.Duration{time.Second}, nil, time.Second + time.Minute},
		{"two at once", []time.Duration{time.Second, 0}, nil, time.Second + time.Minute},
		{"two that are one", []time.Duration{time.Second, sameSignal}, nil, time.Second + time.Minute},
		{"a second", []time.Duration{time.Second, sameSignal + 1}, errSecondSignal, time.Second + sameSignal + 1},
		{"a second after a double", []time.Duration{time.Second, 0, time.Second}, errSecondSignal, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal)
				go func() {
					for _, pause := range tt.pauses {
						<-time.After(pause)
						signals <- syscall.SIGTERM
					}
				}()
				begin, stopped := time.Now(), make(chan struct{})
				err := untilSignalled(signals, slog.New(slog.DiscardHandler), func(ctx context.Context) error {
					defer close(stopped)
					select {
					case <-time.After(time.Hour):
					case <-ctx.Done():
						<-time.After(time.Minute)
					}
					return nil
				})
				if took := time.Since(begin); !errors.Is(err, tt.want) || took != tt.took {
					t.Errorf("got %v after %v, want %v after %v", err, took, tt.want, tt.took)
				}
				<-stopped // in the process itself no code waits for it
			})
		})
	}
}

func TestTickLines(t *testing.T) {
	var out strings.Builder
	tickLines(&out).Started(scheduler.RunEvent{
		Job: "report", Tick: time.Date(2026, 1, 2, 16, 4, 5, 0, time.FixedZone("", 3600)), Node: "dev-2",
		Token: 1795267334003305, Lag: 840 * time.Microsecond,
	})
	want := "report        tick 2026-01-02T15:04:05.000Z  node dev-2  token 1795267334003305  lag 0.8ms\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	line := tickLine(scheduler.RunEvent{Job: "move", Tick: time.UnixMilli(0), Node: "a", Token: 7, Shard: 3, Shards: 16})
	if want := "move          tick 1970-01-01T00:00:00.000Z  shard 3 of 16  node a  token 7  lag 0.0ms"; line != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
}
