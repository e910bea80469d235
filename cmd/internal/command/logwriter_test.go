package command

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/cmd/internal/config"
)

// stuck is a stderr whose reader hangs, or is gone, until the test lets go.
type stuck struct {
	mu   sync.Mutex
	said strings.Builder
	hold chan struct{} // nil: nothing is held
	gone bool
}

func (s *stuck) Write(p []byte) (int, error) {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return 0, errors.New("broken pipe")
	}
	return s.said.Write(p)
}

func (s *stuck) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSuffix(s.said.String(), "\n"), "\n")
}

// While no reader reads, loggers go on; lines that do not fit are counted, and their number is
// printed in their place.
func TestReaderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{hold: make(chan struct{})}
		o := newLogWriter(s)
		defer o.stop()
		log := newLogger(o, config.Log{Level: "info", Format: "json"})
		long := strings.Repeat("x", 100<<10)
		for i := range 20 {
			log.Info("line", "i", i, "long", long)
			if i == 0 {
				synctest.Wait() // the first is being written, and takes no room any more
			}
		}
		began := time.Now()
		if o.flush(); time.Since(began) != logFlush {
			t.Errorf("it waited %s for a reader that hangs", time.Since(began))
		}
		close(s.hold)
		synctest.Wait()
		log.Info("after")
		o.flush()
		lines := s.lines()
		n := len(lines) - 2
		if n != 11 || !strings.Contains(lines[n], fmt.Sprintf(`"lines":%d`, 20-n)) || !strings.Contains(lines[n], "nobody read") || !strings.Contains(lines[n+1], "after") {
			t.Errorf("%d lines, the last two are %.300q", len(lines), lines[max(n, 0):])
		}
		for i, line := range lines[:n] {
			if !strings.Contains(line, fmt.Sprintf(`"i":%d,`, i)) {
				t.Errorf("line %d is %.60q", i, line)
			}
		}
	})
}

// A reader that is gone costs nothing, and gets the number of lost lines when it is back.
func TestWithoutAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{gone: true}
		o := newLogWriter(s)
		for range 3 {
			fmt.Fprintln(o, "words")
			o.flush()
		}
		s.mu.Lock()
		s.gone = false
		s.mu.Unlock()
		fmt.Fprintln(o, "more")
		o.flush()
		o.stop()
		fmt.Fprintln(o, "too late")
		if lines := s.lines(); len(lines) != 2 || !strings.HasPrefix(lines[0], "escapement: 3 lines") || lines[1] != "more" {
			t.Errorf("got %q", lines)
		}
	})
}
