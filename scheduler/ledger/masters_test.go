package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

// TestMastersOfACluster replaces the master of some partitions, and wants those who know the old one to be refused there,
// and nowhere else.
func TestMastersOfACluster(t *testing.T) {
	c := redistest.StartCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := must(Open(ctx, c.Client(t), Config{Namespace: "m", Partitions: 16}))
	known := func(before string) string {
		_, runID, err := l.Time(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return l.Masters(ctx, runID, before)
	}
	before := known("")
	home := must(c.Master(ctx, controlKey("m")))
	lost, kept := -1, -1
	var old *redistest.Server
	for p, id := range l.byMaster(before) {
		master := must(c.Master(ctx, l.keys[p].jobs))
		if want := runIDOf(must(master.Client(t).Info(ctx, "server").Result())); id != want {
			t.Errorf("partition %d is at %s; want %s", p, id, want)
		}
		if master == home {
			kept = p
		} else if old == nil || master == old {
			lost, old = p, master
		}
	}
	if kept < 0 || lost < 0 {
		t.Fatalf("%q does not name the masters of %d partitions", before, l.Partitions())
	}

	claim := func(p int, run string) Claim {
		job := ""
		for i := 0; job == "" || l.Partition(job) != p; i++ {
			job = fmt.Sprint("job-", run, "-", i)
		}
		now, _, _ := l.Time(ctx)
		from := now.UnixMilli() - 5000
		must(l.Define(ctx, now.UnixMilli(), []Definition{{Job: job, Digest: "d-second", Text: []byte("{}"), Cursor: from}}))
		return Claim{Job: job, Digest: "d-second", Run: run, TTL: time.Minute, From: from, Tick: from, Next: from + 1000}
	}
	now := func() int64 {
		at, _, err := l.Time(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMilli()
	}
	grant := func(server string, c Claim) (Lease, error) {
		got, err := l.At(server).Claim(ctx, node, now(), []Claim{c})
		if err != nil {
			return Lease{}, err
		}
		if got[0].Verdict != Granted {
			t.Fatalf("%s: %+v", c.Job, got[0])
		}
		return c.Lease(got[0], node, now()), nil
	}
	here, there := must(grant(before, claim(kept, "r1"))), must(grant(before, claim(lost, "r2")))
	if err := old.Kill(); err != nil {
		t.Fatal(err)
	}
	if now := known(before); now != before {
		t.Errorf("while a master is away: %s; want that it stays %s", now, before)
	}
	if ids := l.byMaster(known("")); ids[lost] != "" || ids[kept] == "" {
		t.Errorf("to who comes while a master is away: %q; want nothing of the partitions that it had", ids)
	}
	if _, err := c.Promoted(ctx, l.keys[lost].jobs, old); err != nil {
		t.Fatal(err)
	}
	after := before
	for ; after == before; after = known(before) {
		if ctx.Err() != nil {
			t.Fatal("nobody has noticed the new master")
		}
		<-time.After(20 * time.Millisecond)
	}
	for p, id := range l.byMaster(before) {
		if changed := l.byMaster(after)[p] != id; changed != (id == l.byMaster(before)[lost]) {
			t.Errorf("partition %d is at another server: %t", p, changed)
		}
	}
	if a, b := Fingerprint(before), Fingerprint(after); a == b || len(a) != 40 || Fingerprint("x") != "x" {
		t.Errorf("fingerprints %q and %q", a, b)
	}

	at := l.At(before)
	server := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrServer) {
			t.Errorf("%s, by who knows the old master: %v", what, err)
		}
	}
	_, err := grant(before, claim(lost, "r3"))
	server("claim", err)
	_, err = at.Settle(ctx, []Report{{Job: there.Job, Run: there.Run, Token: there.Token}})
	server("settle", err)
	_, err = l.Reassert(ctx, now(), before, []Assertion{of(there)})
	server("reassert", err)
	renewal := func(l Lease) locking.Renewal {
		return locking.Renewal{Name: l.Job, Owner: l.Run, Token: l.Token, TTL: time.Minute}
	}
	got := must(at.Renew(ctx, []locking.Renewal{renewal(here), renewal(there)}))
	if want := []locking.RenewAnswer{locking.Renewed, locking.Unknown}; !slices.Equal(got, want) {
		t.Errorf("renewed by who knows the old master: %v; want %v", got, want)
	}
	if said := must(l.Reassert(ctx, now(), after, []Assertion{of(there)})); said[0].Word != Known && said[0].Word != Restored {
		t.Errorf("told to the new master: %+v", said)
	}
	got = must(l.At(after).Renew(ctx, []locking.Renewal{renewal(here), renewal(there)}))
	if want := []locking.RenewAnswer{locking.Renewed, locking.Renewed}; !slices.Equal(got, want) {
		t.Errorf("renewed by who knows the new master: %v; want %v", got, want)
	}
	for _, p := range []int{kept, lost} {
		if _, err := grant(after, claim(p, fmt.Sprint("r4-", p))); err != nil {
			t.Errorf("claim by who knows the new master: %v", err)
		}
	}
}

// TestMastersAreSpelt: what one text says of all partitions.
func TestMastersAreSpelt(t *testing.T) {
	for _, ids := range [][]string{{"a", "a", "b", "a", "b", "c"}, {"a", "", "b", "", "", "a"}, {"x", "b", "c", "d", "e", "f"}} {
		text := joined(ids)
		l := &Ledger{client: redis.NewClusterClient(&redis.ClusterOptions{}), keys: make([]keys, len(ids)-1)}
		if got := l.byMaster(text); !slices.Equal(got, ids[1:]) {
			t.Errorf("%q says %q; want %q", text, got, ids[1:])
		}
		if got := l.byMaster("a run_id"); got != nil {
			t.Errorf("of one run_id alone %q; want none", got)
		}
	}
}
