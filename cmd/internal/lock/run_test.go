//go:build unix

package lock

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/locking"
)

type neverRenew struct{}

func (neverRenew) Renew(context.Context, []locking.Renewal) ([]locking.RenewAnswer, error) {
	return nil, locking.ErrUnreachable
}

// Where the program stood still between the grant and the start, the lock may have another holder:
// no command begins beside it.
func TestLockLostBeforeTheCommand(t *testing.T) {
	k := locking.NewKeeper(neverRenew{}, locking.KeeperConfig{Margin: lockstore.Margin})
	lease := k.Hold(t.Context(), locking.Grant{Name: "a", Owner: "o", Token: 1, TTL: 3 * time.Second, Asked: time.Now().Add(-time.Minute)})
	file, said := filepath.Join(t.TempDir(), "ran"), make(chan string, 1)
	u := &underLock{
		lease: lease, child: exec.Command("touch", file), signals: make(chan os.Signal),
		report: func(f string, args ...any) { said <- fmt.Sprintf(f, args...) },
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
