//go:build unix

package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/zklock"
)

func wantInput(t *testing.T, what string, err error, field string) {
	t.Helper()
	var input *locking.InputError
	if !errors.As(err, &input) || input.Field != field || errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("%s: %v; want an *InputError of %s", what, err, field)
	}
}

func request(owner string, ttl time.Duration) locking.Request {
	return locking.Request{Name: "a", Owner: owner, TTL: ttl}
}

func mustAcquire(t *testing.T, d locking.Driver, r locking.Request) locking.Grant {
	t.Helper()
	g, err := d.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// driver returns a driver on the shared server, with a root of its own.
func driver(t *testing.T) (d *zklock.Driver, n *network, root string) {
	t.Helper()
	root = fmt.Sprint("/tests/", roots.Add(1))
	c, n := connect(t, []string{theServer(t).addr()})
	return zklock.NewDriver(c, zklock.Config{Root: root}), n, root
}

func TestRefused(t *testing.T) {
	none := zklock.NewClient(nil, zklock.ClientConfig{})
	defer none.Close()
	c := zklock.NewClient([]string{"127.0.0.1:1"}, zklock.ClientConfig{Logger: slog.New(slog.DiscardHandler)})
	defer c.Close()
	for field, drivers := range map[string][]*zklock.Driver{
		"servers": {zklock.NewDriver(none, zklock.Config{})},
		"Config.Root": {
			zklock.NewDriver(c, zklock.Config{Root: "locks"}), zklock.NewDriver(c, zklock.Config{Root: "/"}),
			zklock.NewDriver(c, zklock.Config{Root: "/a/"}), zklock.NewDriver(c, zklock.Config{Root: "/a/../b"}),
			zklock.NewDriver(c, zklock.Config{Root: "/zookeeper"}), zklock.NewDriver(c, zklock.Config{Root: "/a\n"}),
		},
	} {
		for _, d := range drivers {
			_, acquire := d.Acquire(t.Context(), request("o", time.Minute))
			_, renew := d.Renew(t.Context(), []locking.Renewal{{Name: "a"}})
			_, owner := d.Owner(t.Context(), "a")
			for _, err := range []error{acquire, renew, owner, d.Release(t.Context(), "a", "o"), d.Revoke(t.Context(), "a", 1)} {
				wantInput(t, "a call", err, field)
			}
		}
	}
}

// TestTooLongForTheServer acquires for longer than the server's sessions last.
func TestTooLongForTheServer(t *testing.T) {
	d, _, _ := driver(t)
	r := request("o", 50*time.Second)
	r.Delay = 20 * time.Second
	_, err := d.Acquire(t.Context(), r)
	wantInput(t, "ttl and delay of 70s, with sessions of 90s", err, "Options.TTL")
	if err == nil || !strings.Contains(err.Error(), "maxSessionTimeout") {
		t.Errorf("%v; want what to set", err)
	}
	if o, err := d.Owner(t.Context(), "a"); o.Held() || err != nil {
		t.Errorf("after the refusal %+v, %v", o, err)
	}
}

func TestUnreachableServer(t *testing.T) {
	c := zklock.NewClient([]string{"127.0.0.1:1"}, zklock.ClientConfig{Logger: slog.New(slog.DiscardHandler)})
	defer c.Close()
	d := zklock.NewDriver(c, zklock.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, acquire := d.Acquire(ctx, request("o", time.Minute))
	_, owner := d.Owner(ctx, "a")
	for _, err := range []error{acquire, owner, d.Release(ctx, "a", "o"), d.Revoke(ctx, "a", 1)} {
		if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("got %v; want ErrUnreachable and the address", err)
		}
	}
}

func TestNames(t *testing.T) {
	d, _, _ := driver(t)
	names := []string{".", "..", "/", "a/b", "/a", "a/", "%2F", "a%2Fb", "ü", "a b", "held-x", "wait-x!0000000001", "日本", strings.Repeat("ä/", 170), "!"}
	for i, name := range names {
		for _, owner := range []string{"o", "ö!-/%", "wait-0000000001"} {
			r := locking.Request{Name: name, Owner: owner + fmt.Sprint(i), TTL: time.Second, Holder: "ä\"\\"}
			g := mustAcquire(t, d, r)
			if o, err := d.Owner(t.Context(), name); err != nil || o.Owner != r.Owner || o.Holder != r.Holder || o.Token != g.Token {
				t.Errorf("%q: %+v, %v", name, o, err)
			}
			if err := d.Release(t.Context(), name, r.Owner); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

// TestQueueOrder: the numbers of sequential nodes have 32 bits, and go on below zero. Other nodes are none of ours.
func TestQueueOrder(t *testing.T) {
	got := zklock.Queue("wait-c!-2147483647", "wait-a!2147483646", "wait-b!-2147483648", "wait-!", "wait-x!99999999999", "wait-%zz!0000000001", "lock-1", "q", "wait-y0000000001", "")
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("the queue is %q; want %q", got, want)
	}
}

func TestSessionTimeouts(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		0: time.Second, time.Second: time.Second, time.Second + 1: 1500 * time.Millisecond, 1600 * time.Millisecond: 2 * time.Second,
		15 * time.Second: 16 * time.Second, 22500 * time.Millisecond: 24 * time.Second, 90 * 24 * time.Hour: (1<<31 - 1) * time.Millisecond,
	} {
		if got := zklock.SessionTimeout(d); got != want {
			t.Errorf("%s: %s; want %s", d, got, want)
		}
	}
}

// TestForeignNodes puts nodes and data of other kinds among the driver's nodes.
func TestForeignNodes(t *testing.T) {
	d, _, root := driver(t)
	c := raw(t, []string{theServer(t).addr()})
	put := func(path, data string) {
		t.Helper()
		if _, err := c.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
	}
	put("/tests", "")
	put(root, "not an id")
	first := mustAcquire(t, d, request("o1", 10*time.Second))
	put(root+"/lock-a/x", "")
	put(root+"/lock-a/wait-zz", "")
	put(root+"/lock-a/lock-0000000001", "")
	if got, err := d.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "o1", Token: first.Token, TTL: 10 * time.Second}}); err != nil || got[0] != locking.Renewed {
		t.Fatalf("renew beside foreign nodes: %v, %v", got, err)
	}
	if err := d.Release(t.Context(), "a", "o1"); err != nil {
		t.Fatal(err)
	}
	if g := mustAcquire(t, d, request("o2", 10*time.Second)); g.Token <= first.Token {
		t.Errorf("token %d after %d", g.Token, first.Token)
	}
	// The holder's own node with other data: its holder cannot be sure, and other owners see a
	// holder.
	held := root + "/lock-a/held-o2"
	data, _, err := c.Get(held)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Set(held, []byte("{"), -1); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "o2", Token: 1, TTL: time.Second}}); err != nil || got[0] != locking.Gone {
		t.Errorf("renew with overwritten data: %v, %v", got, err)
	}
	if o, err := d.Owner(t.Context(), "a"); err != nil || o.Owner != "o2" {
		t.Errorf("owner with overwritten data: %+v, %v", o, err)
	}
	if err := d.Release(t.Context(), "a", "o2"); err != nil {
		t.Errorf("release with overwritten data: %v", err)
	}
	// A node with this owner's name that is not of its session ends without it.
	put(root+"/lock-b", "")
	put(root+"/lock-b/held-o5", string(data))
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if g, err := d.Acquire(short, locking.Request{Name: "b", Owner: "o5", TTL: time.Second}); err == nil {
		t.Errorf("granted %+v with a node of another session", g)
	}
	// A foreign persistent node that looks like a holder's: held, by an owner that no driver can
	// be.
	put(root+"/lock-a/held-o3", "")
	if _, err := d.Acquire(t.Context(), request("o4", time.Second)); !errors.Is(err, locking.ErrHeld) {
		t.Errorf("acquire beside a foreign holder: %v", err)
	}
}

// TestDeletedByHand deletes the nodes of a holder and of a waiter, as an operator may.
func TestDeletedByHand(t *testing.T) {
	server := theServer(t).addr()
	root := fmt.Sprint("/tests/", roots.Add(1))
	c := raw(t, []string{server})
	l, _ := locker(t, root, server)
	other, _ := locker(t, root, server)
	lease, err := l.Acquire(t.Context(), "a", locking.Options{TTL: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { // ends with its wait
		b, err := other.Acquire(t.Context(), "a", locking.Options{Wait: 10 * time.Second})
		if err == nil {
			if b.Token() <= lease.Token() {
				err = fmt.Errorf("token %d after %d", b.Token(), lease.Token())
			}
			err = errors.Join(err, b.Release(context.Background()))
		}
		waited <- err
	}()
	waiter := func() (found string) {
		children, _, err := c.Children(root + "/lock-a")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range children {
			if strings.HasPrefix(name, "wait-") {
				found = name
			}
		}
		return found
	}
	await(t, "the waiter has a node", func() bool { return waiter() != "" })
	first := waiter()
	if err := c.Delete(root+"/lock-a/"+first, -1); err != nil {
		t.Fatal(err)
	}
	await(t, "the waiter has another node", func() bool { return waiter() != "" && waiter() != first })
	select {
	case err := <-waited:
		t.Fatalf("the waiter whose node was deleted ended with %v while another holds the lock", err)
	default:
	}
	if err := c.Delete(root+"/lock-a/held-"+lease.Owner(), -1); err != nil {
		t.Fatal(err)
	}
	<-lease.Context().Done()
	if cause := context.Cause(lease.Context()); !errors.Is(cause, locking.ErrLeaseLost) {
		t.Errorf("cause %v", cause)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// TestTokensEnd: beyond 2^53 no lock is granted, and none stays held.
func TestTokensEnd(t *testing.T) {
	d, _, root := driver(t)
	mustAcquire(t, d, request("o1", time.Second))
	if err := d.Release(t.Context(), "a", "o1"); err != nil {
		t.Fatal(err)
	}
	c := raw(t, []string{theServer(t).addr()})
	id, _, err := c.Get(root)
	if err != nil {
		t.Fatal(err)
	}
	tokens := root + "/tokens-" + string(id)
	if _, err := c.Set(tokens, []byte(fmt.Sprint(1<<53-1)), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(t.Context(), request("o2", time.Second)); err == nil || !strings.Contains(err.Error(), "2^53") {
		t.Errorf("acquire beyond 2^53: %v", err)
	}
	if _, err := c.Set(tokens, []byte("x"), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(t.Context(), request("o3", time.Second)); err == nil || !strings.Contains(err.Error(), tokens) || errors.Is(err, locking.ErrHeld) {
		t.Errorf("acquire with an unreadable base: %v", err)
	}
	if o, err := d.Owner(t.Context(), "a"); err != nil || o.Held() {
		t.Errorf("after the refusals: %+v, %v", o, err)
	}
}

// TestRootOfAnotherClient: a client that has read the base of a root does not use it for a root
// that another client has created since, or for an ID that another client has written into it.
func TestRootOfAnotherClient(t *testing.T) {
	_, _, root := driver(t)
	servers := []string{theServer(t).addr()}
	fresh := func() locking.Driver {
		c, _ := connect(t, servers)
		return zklock.NewDriver(c, zklock.Config{Root: root})
	}
	old := fresh()
	var last locking.Token
	use := func(d locking.Driver) {
		t.Helper()
		g := mustAcquire(t, d, request(uuid.NewString(), time.Second))
		if g.Token <= last {
			t.Fatalf("token %d after %d, with another root", g.Token, last)
		}
		last = g.Token
		if err := d.Release(t.Context(), "a", g.Owner); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		use(old)
		if i%2 == 0 {
			deleteAll(t, servers, root)
		} else if _, err := raw(t, servers).Set(root, []byte(uuid.NewString()), -1); err != nil {
			t.Fatal(err)
		}
		use(fresh())
	}
	use(old)
}

// TestBaseRaisedByAnother: a client does not use the base that it has read before another client raised it.
func TestBaseRaisedByAnother(t *testing.T) {
	s := store(theServer(t).addr())
	a, _ := s.Connect(t)
	b, _ := s.Connect(t)
	last := mustAcquire(t, a, request("a0", time.Second))
	if err := a.Release(t.Context(), "a", "a0"); err != nil {
		t.Fatal(err)
	}
	for i, d := range []locking.Driver{b, a, b, a} {
		r := request(fmt.Sprint("o", i), time.Second)
		if i%2 == 0 {
			r.After = last.Token + 1000_000
		}
		g := mustAcquire(t, d, r)
		if g.Token <= max(last.Token, r.After) {
			t.Fatalf("token %d after %d, with After %d", g.Token, last.Token, r.After)
		}
		last = g
		if err := d.Release(t.Context(), "a", g.Owner); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAuth: with credentials, the nodes are for the same identity only, also after a lost
// connection; and the credentials are in no log.
func TestAuth(t *testing.T) {
	const secret = "hunter2"
	var log bytes.Buffer
	server, root := theServer(t).addr(), fmt.Sprint("/auth", roots.Add(1))
	n := new(network)
	c := zklock.NewClient([]string{server}, zklock.ClientConfig{
		Dial: n.dial, Auth: []zklock.Auth{{Scheme: "digest", Credentials: []byte("locks:" + secret)}},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	d := zklock.NewDriver(c, zklock.Config{Root: root})
	mustAcquire(t, d, request("o1", 2*time.Second))
	n.Cut()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := d.Release(short, "a", "o1"); !errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("release over a cut network: %v", err)
	}
	n.Heal()
	await(t, "released after the network healed", func() bool { return d.Release(t.Context(), "a", "o1") == nil })
	mustAcquire(t, d, request("o2", 2*time.Second))

	stranger, _ := connect(t, []string{server}, zklock.Auth{Scheme: "digest", Credentials: []byte("locks:other")})
	_, err := zklock.NewDriver(stranger, zklock.Config{Root: root}).Acquire(t.Context(), request("o3", time.Second))
	if !errors.Is(err, zk.ErrNoAuth) || errors.Is(err, locking.ErrHeld) || errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("another identity: %v; want that it has no permission", err)
	}
	c.Close() // so that no goroutine writes to the log
	if log.Len() == 0 || strings.Contains(log.String(), secret) {
		t.Errorf("the log is empty or has the password: %s", log.String())
	}
}
