//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

type neverRenew struct{}

func (neverRenew) Renew(context.Context, []locking.Renewal) ([]locking.RenewAnswer, error) {
	return nil, locking.ErrUnreachable
}

// The words about the loss go into a pipe that nobody reads: the command is killed all the same.
func TestLockKillWaitsForNoWords(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil { // fill it, as the command's own output would
		_, err = w.Write(make([]byte, 4096))
	}
	if err := w.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	k := locking.NewKeeper(neverRenew{}, locking.KeeperConfig{Margin: lockMargin})
	asked := time.Now()
	lease := k.Hold(t.Context(), locking.Grant{Name: "a", Owner: "o", Token: 1, TTL: 3 * time.Second, Asked: asked})
	child := exec.Command("sh", "-c", `trap "" TERM; while :; do sleep 0.1; done`)
	u := &underLock{
		lease: lease, child: child, signals: make(chan os.Signal),
		say: func(f string, args ...any) { fmt.Fprintf(w, f+"\n", args...) },
	}
	done := make(chan struct{})
	go func() {
		_, _ = u.run()
		close(done)
	}()
	select {
	case <-done:
		if late := time.Since(asked.Add(3 * time.Second)); late > 0 {
			t.Errorf("the command was alive %s after the lock had lapsed", late)
		}
	case <-time.After(time.Until(asked.Add(6 * time.Second))):
		t.Errorf("the lock lapsed 3 s ago, the command (pid %d) is alive: SIGKILL waits for the words", child.Process.Pid)
		_ = r.Close() // ends the writing
		<-done
	}
	_ = w.Close()
}

// Where the program stood still between the grant and the start, the lock is somebody else's by now: no command begins beside it.
func TestLockLostBeforeTheCommand(t *testing.T) {
	k := locking.NewKeeper(neverRenew{}, locking.KeeperConfig{Margin: lockMargin})
	lease := k.Hold(t.Context(), locking.Grant{Name: "a", Owner: "o", Token: 1, TTL: 3 * time.Second, Asked: time.Now().Add(-time.Minute)})
	file, said := filepath.Join(t.TempDir(), "ran"), make(chan string, 1)
	u := &underLock{
		lease: lease, child: exec.Command("touch", file), signals: make(chan os.Signal),
		say: func(f string, args ...any) { said <- fmt.Sprintf(f, args...) },
	}
	if _, err := u.run(); err != nil || !u.lost {
		t.Errorf("lost %t, error %v", u.lost, err)
	}
	if words := <-said; !strings.HasPrefix(words, "the command was not run: lease lost") {
		t.Error(words)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command was run")
	}
}
