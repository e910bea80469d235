//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redistest"
)

// A node's stderr is a pipe that is full, or broken. The node runs its jobs, and drains when it is
// stopped. Its commands end by SIGPIPE as ever.
func TestNobodyReads(t *testing.T) {
	for _, name := range []string{"hangs", "is gone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, full, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			if name == "hangs" {
				cmdtest.FillPipe(t, full)
			} else {
				_ = read.Close()
			}
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			lines := listen(t, fifo)
			config := testkit.Write(t, fmt.Sprintf(`jobs:
- {name: often, schedule: "* * * * * *", overlap: skip, exec: {command: [sh, -c, 'sh -c "kill -PIPE \$\$; echo survived > %[1]s"; echo ran > %[1]s']}}
`, fifo))
			node := cmdtest.Process(t, []string{"ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0", "ESCAPEMENT_REDIS_URL=redis://" + redistest.Start(t).Addr()}, "run", "--config", config)
			node.Stderr = full
			if err := node.Start(); err != nil {
				t.Fatal(err)
			}
			_ = full.Close()
			ended := make(chan error, 1)
			go func() { ended <- node.Wait() }()
			defer func() { _ = node.Process.Kill() }() // it has ended, if all is well
			late := time.After(cmdtest.Within)
			for range 3 {
				select {
				case line := <-lines:
					if line != "ran" {
						t.Errorf("a command says it %s", line)
					}
				case err := <-ended:
					t.Fatalf("the node ended: %v", err)
				case <-late:
					t.Fatal("it runs nothing")
				}
			}
			_ = node.Process.Signal(syscall.SIGTERM)
			for over := false; !over; {
				select {
				case <-lines:
				case <-late:
					t.Fatal("told to end, it goes on")
				case err := <-ended:
					if over = true; err != nil {
						t.Errorf("told to end: %v", err)
					}
				}
			}
		})
	}
}

// listen hands on the lines that are written to a FIFO while the test runs.
func listen(t *testing.T, path string) <-chan string {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0) // its own writer, so that there is no end
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	lines := make(chan string)
	go func() {
		for scan := bufio.NewScanner(f); scan.Scan(); {
			select {
			case lines <- scan.Text():
			case <-t.Context().Done():
				return
			}
		}
	}()
	return lines
}
