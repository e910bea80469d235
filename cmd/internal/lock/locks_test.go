package lock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestLocksList lists locks and leases side by side, and gets the locks and leases of one name.
func TestLocksList(t *testing.T) {
	yearly, move := jobs.Job{Name: "yearly", Schedule: "@yearly"}, jobs.Job{Name: "move", Schedule: "@yearly", Shards: 2}
	p := cmdtest.Plant(t, yearly, move)
	p.Wants(command.ExitDone, "[]\n", "", "locks", "list", "-o", "json")
	other := cmdtest.HoldLock(t, p.Server, "order:42", locking.Options{})
	lock := cmdtest.HoldLock(t, p.Server, "yearly", locking.Options{Holder: "bi", TTL: time.Minute})
	run := p.Granted(yearly, "1")
	shard := p.Shard(move, 1)

	got := cmdtest.Decode[[]ops.LockView](t, p.Env, "locks", "list")
	if len(got) != 4 {
		t.Fatalf("got %+v", got)
	}
	for i, want := range []ops.LockView{
		{Name: "move#1", Kind: "run", Owner: shard, Run: shard, Node: "n1"},
		{Name: "order:42", Kind: "lock", Owner: other.Owner(), Token: other.Token()},
		{Name: "yearly", Kind: "lock", Owner: lock.Owner(), Token: lock.Token(), Holder: "bi"},
		{Name: "yearly", Kind: "run", Owner: run, Run: run, Node: "n1"},
	} {
		if want.Token == 0 {
			want.Token = got[i].Token
		}
		if ttl := got[i].TTL; ttl <= 2*time.Second || ttl > time.Hour || got[i].Token == 0 {
			t.Errorf("got %+v", got[i])
		}
		want.TTL = got[i].TTL
		if text, wanted := jsonOf(t, got[i]), jsonOf(t, want); text != wanted {
			t.Errorf("got %s\nwant %s", text, wanted)
		}
	}
	p.Wants(command.ExitDone, "order:42  lock", "", "locks", "list")
	p.Wants(command.ExitDone, "NAME", "2 rows shown; there are more: add --after ", "locks", "list", "--limit", "2")
	whole := p.Wants(command.ExitDone, "NAME", "", "locks", "list", "-o", "wide")
	var pages string
	for after, i := "", 0; i < 10; i++ {
		var some []ops.LockView
		if some = cmdtest.Decode[[]ops.LockView](t, p.Env, "locks", "list", "--limit", "1", "--after", after); len(some) == 0 {
			break
		}
		for _, l := range some {
			pages += l.Name + " " + l.Kind + "\n"
		}
		after = some[len(some)-1].Name
	}
	if strings.Count(pages, "\n") != strings.Count(strings.TrimSpace(whole), "\n") {
		t.Errorf("pages of one name have\n%s\nthe whole list\n%s", pages, whole)
	}

	if l := cmdtest.Decode[ops.LockView](t, p.Env, "locks", "get", "yearly"); l.Kind != "lock" || len(l.Also) != 1 || l.Also[0].Run != run {
		t.Errorf("got %+v", l)
	}
	p.Wants(command.ExitDone, "kind     lock\n", "", "locks", "get", "yearly")
	p.Wants(command.ExitDone, "kind     run\n", "", "locks", "get", "yearly")
	for _, name := range []string{"move", "move#1"} {
		if l := cmdtest.Decode[ops.LockView](t, p.Env, "locks", "get", name); l.Kind != "run" || l.Name != "move#1" || l.Also != nil {
			t.Errorf("%s: got %+v", name, l)
		}
	}
	p.Wants(command.ExitNotFound, "", `lock "move#0": nobody holds it`, "locks", "get", "move#0")
	p.Wants(command.ExitNotFound, "", `lock "nope": nobody holds it; `+"`locks list`"+` shows what is held`, "locks", "get", "nope")
}

func jsonOf(t *testing.T, l ops.LockView) string {
	t.Helper()
	var b strings.Builder
	if err := print.JSON(&b, l); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// short is the least TTL of a lock.
const short = 3 * lockstore.Margin

// TestLocksRelease requests a release from holders, and takes a lock by force.
func TestLocksRelease(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t)
	release := func(token locking.Token, more ...string) []string {
		return append([]string{"locks", "release", "a", "--token", strconv.FormatInt(token, 10)}, more...)
	}
	p.Wants(command.ExitNotFound, "", `lock "a": nobody holds it`, release(1)...)
	p.Wants(command.ExitNotFound, "", `lock "a": nobody holds it`, release(1, "--force")...)

	lease := cmdtest.HoldLock(t, p.Server, "a", locking.Options{Holder: "billing", TTL: short})
	for _, more := range [][]string{nil, {"--force"}} {
		p.Wants(command.ExitRefused, "", "token 1 does not hold \"a\": it is held by billing with token "+strconv.FormatInt(lease.Token(), 10), release(1, more...)...)
	}
	if !lease.Valid() {
		t.Fatal("a wrong token ended the lease")
	}
	p.Wants(command.ExitDone, "", `lock "a" is free`, release(lease.Token())...)
	if !lease.Lost() || !errors.Is(context.Cause(lease.Context()), locking.ErrLeaseLost) {
		t.Error("it is free, and its holder was not told")
	}

	// Another holder is next in line.
	lease = cmdtest.HoldLock(t, p.Server, "a", locking.Options{TTL: short})
	next, locker := make(chan *locking.Lease, 1), redislock.New(p.Client, redislock.Config{})
	defer locker.Close()
	go func() {
		got, err := locker.Acquire(t.Context(), "a", locking.Options{Wait: cmdtest.Within, Holder: "next"})
		if err != nil {
			t.Error(err)
		}
		next <- got
	}()
	cmdtest.Eventually(t, "somebody waits", func() bool { return cmdtest.Decode[ops.LockView](t, p.Env, "locks", "get", "a").Waiters == 1 })
	if got := cmdtest.Decode[releasedJSON](t, p.Env, release(lease.Token())...); got != (releasedJSON{"a", "lock", lease.Token(), true}) {
		t.Errorf("got %+v", got)
	}
	if lease = <-next; lease == nil {
		return
	}

	// By force, it is free while its holder does not know yet.
	p.Wants(command.ExitDone, "", `lock "a" is taken from next with token `, release(lease.Token(), "--force")...)
	if !lease.Valid() {
		t.Error("the holder knew of it before its renewal")
	}
	defer func() { _ = lease.Release(context.Background()) }() // the lease is lost; its renewal ends
	p.Wants(command.ExitNotFound, "", "nobody holds it", "locks", "get", "a")
	again := cmdtest.HoldLock(t, p.Server, "a", locking.Options{})
	if again.Token() <= lease.Token()+1 {
		t.Errorf("token %d after %d, and one between them", again.Token(), lease.Token())
	}
	if err := again.Release(t.Context()); err != nil {
		t.Fatal(err)
	}

	// A lock that is not renewed ends by itself.
	asked := time.Now()
	fixed := cmdtest.HoldLock(t, p.Server, "a", locking.Options{Fixed: true, TTL: short})
	p.Wants(command.ExitDone, "", `lock "a" is free`, release(fixed.Token())...)
	if held := time.Since(asked); held < short {
		t.Errorf("it was free %s after it was asked for, with a ttl of %s", held, short)
	}
}

// TestLocksReleaseRun cancels a run and waits for its end; it cannot be forced.
func TestLocksReleaseRun(t *testing.T) {
	yearly := jobs.Job{Name: "yearly", Schedule: "@yearly"}
	p := cmdtest.Plant(t, yearly)
	run := p.Granted(yearly, "1")
	l := cmdtest.Decode[ops.LockView](t, p.Env, "locks", "get", "yearly")
	p.Wants(command.ExitRefused, "", "run "+run+" on n1 with token "+print.Number(l.Token), "locks", "release", "yearly", "--token", "1")
	p.Wants(command.ExitRefused, "", "without --force the run is cancelled", "locks", "release", "yearly", "--token", print.Number(l.Token), "--force")
	if r, err := p.Ops.GetRun(t.Context(), run); err != nil || r.Outcome != jobs.OutcomeRunning {
		t.Errorf("got %+v, %v", r, err)
	}

	code, words := make(chan int, 1), &cmdtest.Buffer{}
	go func() {
		code <- cmdtest.NewApp().Run([]string{"locks", "release", "yearly", "--token", print.Number(l.Token)}, strings.NewReader(""), words, words, p.Env)
	}()
	cmdtest.Eventually(t, "the run is told", func() bool { return strings.Contains(words.String(), "is cancelled; waiting") })
	if r, err := p.Ops.GetRun(t.Context(), run); err != nil || !strings.Contains(r.Note, "to be cancelled by ann: locks release") {
		t.Errorf("got %+v, %v", r, err)
	}
	select {
	case got := <-code:
		t.Errorf("exit %d while the run goes on: %s", got, words)
	default:
	}
	p.End("yearly", run, jobs.OutcomeCancelled, "")
	if got := <-code; got != command.ExitDone || !strings.Contains(words.String(), "run "+run+" has ended, and its lease is gone") {
		t.Errorf("exit %d, %s", got, words)
	}
}

// TestLocksOfSeveral lists the holders of a semaphore and of a read-write lock, and ends one of
// them.
func TestLocksOfSeveral(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t)
	token := func(l *locking.Lease) string { return strconv.FormatInt(l.Token(), 10) }
	two := locking.Options{Permits: 3, TTL: 3 * time.Second}
	two.Holder = "one"
	one := cmdtest.HoldLock(t, p.Server, "db", two)
	two.Holder = "two"
	other := cmdtest.HoldLock(t, p.Server, "db", two)
	reader := cmdtest.HoldLock(t, p.Server, "file", locking.Options{Mode: locking.Read})

	got := cmdtest.Decode[[]ops.LockView](t, p.Env, "locks", "list", "--limit", "1")
	if len(got) != 2 || got[0].Token != one.Token() || got[1].Token != other.Token() || got[0].Permits != 3 || got[0].Kind != ops.LockKind || got[1].Holder != "two" {
		t.Errorf("a page of one name: %+v", got)
	}
	p.Wants(command.ExitDone, "file  read  "+token(reader), "", "locks", "list", "--after", "db")
	p.Wants(command.ExitDone, "db    permit of 3  "+token(one), "", "locks", "list")
	if l := cmdtest.Decode[ops.LockView](t, p.Env, "locks", "get", "db"); l.Token != one.Token() || len(l.Also) != 1 || l.Also[0].Token != other.Token() {
		t.Errorf("got %+v", l)
	}
	p.Wants(command.ExitDone, "", `lock "db": that grant has ended; now it is held by one`, "locks", "release", "db", "--token", token(other))
	if !other.Lost() || !one.Valid() {
		t.Errorf("lost %t, the other valid %t", other.Lost(), one.Valid())
	}
	p.Wants(command.ExitDone, "", `lock "db" is taken from one`, "locks", "release", "db", "--token", token(one), "--force")
	p.Wants(command.ExitDone, "", `lock "file" is taken from `, "locks", "release", "file", "--token", token(reader), "--force")
	p.Wants(command.ExitNotFound, "", "nobody holds it", "locks", "get", "db")
	p.Wants(command.ExitDone, "[]\n", "", "locks", "list", "-o", "json")
}

// lapses is a namespace in which a lock that is taken by force cannot be given back.
type lapses struct{}

func (lapses) Do(_ context.Context, _ ops.Actor, _ ops.Row, _, out any) error {
	*out.(*ops.Release) = ops.Release{Lock: ops.LockView{Name: "a", Kind: ops.LockKind}, Did: ops.ReleaseLapses}
	return nil
}

// TestLocksReleaseForceIsNotGivenBack: a lock that was taken by force and could not be given back
// is not released yet.
func TestLocksReleaseForceIsNotGivenBack(t *testing.T) {
	p := cmdtest.Plant(t)
	in, err := ops.New(p.Client, "escapement")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		client   *ops.Client
		released string
	}{{in, `"released": true`}, {ops.NewRemote(lapses{}), `"released": false`}} {
		lease := cmdtest.HoldLock(t, p.Server, "a", locking.Options{TTL: short})
		var out, words strings.Builder
		a := &command.App{Stdout: &out, Stderr: &words, Flags: command.Flags{Output: "json"}}
		err := locksRelease(command.Tool{App: a, Ctx: t.Context(), Client: tt.client, Args: []string{"a"}}, lease.Token(), ops.ReleaseOptions{Force: true})
		if err != nil || !strings.Contains(out.String(), tt.released) {
			t.Errorf("%v, %s%swant %s", err, out.String(), words.String(), tt.released)
		}
	}
}

// TestLocksGetForeign: a key without an expiry has an unknown end of its lock; the end is not now.
func TestLocksGetForeign(t *testing.T) {
	p := cmdtest.Plant(t)
	if err := p.Client.Set(t.Context(), "{escapement:lock:a}", "theirs", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p.Wants(command.ExitDone, "left     -\n", "", "locks", "get", "a")
	_, table, _ := cmdtest.Call(p.Env, "", "locks", "list")
	if row := strings.Fields(lastLine(table)); len(row) < 4 || row[0] != "a" || row[3] != "-" {
		t.Errorf("got %q", row)
	}
}
