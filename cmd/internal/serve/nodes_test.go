package serve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
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
