//go:build unix

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler"
)

// keeps is a store in which nothing is given back.
type keeps struct{ *redislock.Driver }

func (keeps) Release(context.Context, string, string) error { return locking.ErrUnreachable }

// TestLocksReleaseForceIsNotGivenBack: what was taken away and could not be given back is not released yet.
func TestLocksReleaseForceIsNotGivenBack(t *testing.T) {
	p := plant(t)
	in, err := scheduler.NewClient(p.client, "escapement")
	if err != nil {
		t.Fatal(err)
	}
	driver := redislock.NewDriver(p.client, redislock.Config{})
	for _, tt := range []struct {
		driver   locking.Driver
		released string
	}{{driver, `"released": true`}, {keeps{driver}, `"released": false`}} {
		lease := holding(t, p.server, "a", locking.Options{TTL: short})
		locker := locking.New(tt.driver, locking.Config{Margin: lockMargin})
		var out, words strings.Builder
		a := &app{stdout: &out, stderr: &words, flags: globalFlags{output: "json"}}
		err := a.locksRelease(lockTool{tool{ctx: t.Context(), in: in, args: []string{"a"}}, driver, locker}, lease.Token(), true)
		if err != nil || !strings.Contains(out.String(), tt.released) {
			t.Errorf("%v, %s%swant %s", err, out.String(), words.String(), tt.released)
		}
		locker.Close()
	}
}

// TestLocksGetForeign: of a key without an end nobody knows when others can have the lock; that is not now.
func TestLocksGetForeign(t *testing.T) {
	p := plant(t)
	if err := p.client.Set(t.Context(), "{escapement:lock:a}", "theirs", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p.wants(exitDone, "left     -\n", "", "locks", "get", "a")
	_, table, _ := call(p.env, "", "locks", "list")
	if row := strings.Fields(lastLine(table)); len(row) < 4 || row[0] != "a" || row[3] != "-" {
		t.Errorf("got %q", row)
	}
}
