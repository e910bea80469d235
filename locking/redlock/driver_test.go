package redlock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

func TestRefusedConfig(t *testing.T) {
	at := func(addrs ...string) (clients []redis.UniversalClient) {
		for _, a := range addrs {
			clients = append(clients, redis.NewClient(redistest.ClientOptions(a)))
		}
		return clients
	}
	three := at("10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1")
	otherDB := redistest.ClientOptions("10.0.0.1:1")
	otherDB.DB = 1
	tests := map[string]struct {
		clients []redis.UniversalClient
		cfg     Config
		want    string // in the error; "": accepted
	}{
		"three":                {clients: three},
		"none":                 {nil, Config{}, "masters are 0"},
		"one":                  {three[:1], Config{}, "masters are 1; use an odd number, at least 3"},
		"even":                 {at("a:1", "b:1", "c:1", "d:1"), Config{}, "masters are 4"},
		"nil":                  {[]redis.UniversalClient{three[0], nil, three[2]}, Config{}, "masters[1] is refused: redis client: it is nil"},
		"retries":              {append(three[:2:2], redis.NewClient(&redis.Options{Addr: "c:1", ContextTimeoutEnabled: true})), Config{}, "masters[2] is refused: redis client c:1: MaxRetries"},
		"twice":                {at("a:1", "b:1", "a:1"), Config{}, "masters[2] is a:1, as masters[0]"},
		"two databases of one": {append(three[:2:2], redis.NewClient(otherDB)), Config{}, "masters[2] is 10.0.0.1:1"},
		"cluster": {append(three[:2:2], redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"c:1"}, ContextTimeoutEnabled: true})),
			Config{}, "masters[2] is a Redis Cluster"},
		"timeout":          {three, Config{MasterTimeout: time.Minute}, "Config.MasterTimeout is 1m0s; use 1ms to 2s"},
		"max ttl":          {three, Config{MaxTTL: time.Millisecond}, "Config.MaxTTL is 1ms, less than four times MasterTimeout 50ms"},
		"longest":          {clients: three, cfg: Config{MaxTTL: 60 * 24 * time.Hour}},
		"too long":         {three, Config{MaxTTL: 60*24*time.Hour + 1}, "Config.MaxTTL is 1440h0m0.000000001s; use at most 1440h0m0s"},
		"would overflow":   {three, Config{MaxTTL: math.MaxInt64}, "use at most 1440h0m0s"},
		"nil of a type":    {[]redis.UniversalClient{three[0], (*redis.Client)(nil), three[2]}, Config{}, "masters[1] is a nil *redis.Client"},
		"nil of a cluster": {[]redis.UniversalClient{three[0], (*redis.ClusterClient)(nil), three[2]}, Config{}, "masters[1] is a Redis Cluster"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(tt.clients, tt.cfg)
			var refused *locking.InputError
			switch {
			case tt.want == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case tt.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want)):
				t.Fatalf("got %v; want an *InputError that says %q", err, tt.want)
			}
			if boot := Bootstrap(t.Context(), tt.clients, tt.cfg); tt.want != "" && !errors.As(boot, &refused) {
				t.Errorf("Bootstrap: %v; want it to refuse the same", boot)
			}
		})
	}
}

// fakeMasters are masters that answer each script as a test says.
type fakeMasters struct {
	answer func(master int, script string) (any, error)
}

var scriptNames = map[string]string{
	acquireScript.Hash(): "acquire", confirmScript.Hash(): "confirm", renewScript.Hash(): "renew", topupScript.Hash(): "topup",
	releaseScript.Hash(): "release", revokeScript.Hash(): "revoke", ownerScript.Hash(): "owner",
	nodeScript.Hash(): "node", repairScript.Hash(): "repair",
}

// hook answers for one master.
type hook struct {
	fakes  *fakeMasters
	master int
}

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error { return h.fill(cmd) }
}

func (h hook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			_ = h.fill(cmd)
		}
		return nil
	}
}

func (h hook) fill(cmd redis.Cmder) error {
	v, err := h.fakes.answer(h.master, scriptNames[fmt.Sprint(cmd.Args()[1])])
	cmd.SetErr(err)
	cmd.(*redis.Cmd).SetVal(v)
	return err
}

func fakeDriver(t *testing.T, answer func(master int, script string) (any, error)) *Driver {
	t.Helper()
	d, err := NewDriver(fakeClients(answer), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Wait)
	return d
}

func fakeClients(answer func(master int, script string) (any, error)) (clients []redis.UniversalClient) {
	for i := range 3 {
		c := redis.NewClient(redistest.ClientOptions(fmt.Sprintf("10.0.0.%d:6379", i+1)))
		c.AddHook(hook{&fakeMasters{answer}, i})
		clients = append(clients, c)
	}
	return clients
}

// reply is one of acquire.lua's.
func reply(master, code int, text string, left int) []any {
	return []any{int64(code), text, int64(left), "who", fmt.Sprint("run", master), "5", int64(60000), int64(0)}
}

// TestAcquireOutcomes has masters answer phase 1 with codes, and shows what that
// makes: p promised, h held by x, y held by y, r returned, f too far, a amnesiac,
// e unreachable, n refused by Redis, s silent for good.
func TestAcquireOutcomes(t *testing.T) {
	var refused *locking.InputError
	tests := []struct {
		answers  string
		want     string // held, unreachable, lost, refused, other, or granted
		takeBack bool
	}{
		{"ppp", "granted", false},
		{"pps", "granted", false},
		{"ppe", "granted", false},
		{"hhp", "held", true},
		{"hhs", "held", true},
		{"hys", "held", true},
		{"hyp", "held", true},
		{"phs", "unreachable", true},
		{"pha", "unreachable", true},
		{"pss", "unreachable", false},
		{"pee", "unreachable", false},
		{"sss", "unreachable", false},
		{"pea", "unreachable", false},
		{"aaa", "unreachable", false},
		{"aap", "unreachable", false},
		{"rrr", "lost", true},
		{"rpe", "lost", true},
		{"fff", "refused", true},
		{"ffp", "refused", true},
		{"fpp", "granted", false}, // one master's clock is wrong
		{"fpe", "unreachable", true},
		{"nnn", "other", true},
		{"pnn", "other", true},
		{"nne", "unreachable", false},
	}
	for _, tt := range tests {
		t.Run(tt.answers, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				released := make(chan struct{}, 9)
				d := fakeDriver(t, func(m int, script string) (any, error) {
					if script == "release" {
						released <- struct{}{}
						return int64(1), nil
					}
					switch tt.answers[m] {
					case 'p':
						return reply(m, codePromised, "7", 1000), nil
					case 'h':
						return reply(m, codeHeld, "x", 1000+m), nil
					case 'y':
						return reply(m, codeHeld, "y", 500), nil
					case 'r':
						return reply(m, codeReturned, "", 0), nil
					case 'f':
						return reply(m, codeTooFar, "", 0), nil
					case 'a':
						return reply(m, codeAmnesiac, "empty", 0), nil
					case 'e':
						return nil, context.DeadlineExceeded
					case 'n':
						return nil, errors.New("WRONGTYPE")
					}
					time.Sleep(time.Hour) // its client ignores the context
					return nil, errors.New("late")
				})
				begun := time.Now()
				_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Second, After: 3})
				if spent := time.Since(begun); spent > 2*DefaultMasterTimeout {
					t.Errorf("took %s", spent)
				}
				got := map[bool]string{errors.Is(err, locking.ErrHeld): "held", errors.Is(err, locking.ErrUnreachable): "unreachable",
					errors.Is(err, locking.ErrLost): "lost", errors.As(err, &refused): "refused", err == nil: "granted"}[true]
				if got == "" {
					got = "other"
				}
				if got != tt.want {
					t.Errorf("got %s: %v; want %s", got, err, tt.want)
				}
				time.Sleep(2 * time.Hour)
				if taken := len(released) > 0; taken != tt.takeBack {
					t.Errorf("taken back: %t; want %t", taken, tt.takeBack)
				}
			})
		})
	}
}

// TestPhaseTwo has masters promise different tokens.
func TestPhaseTwo(t *testing.T) {
	for _, tt := range []struct {
		confirms string // y yes, n no, e unreachable
		want     locking.Token
		takeBack bool
	}{
		{"yyy", 9, false}, {"nnn", 0, true}, {"eee", 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			released := make(chan struct{}, 9)
			d := fakeDriver(t, func(m int, script string) (any, error) {
				switch {
				case script == "acquire" && m == 2:
					return nil, context.DeadlineExceeded
				case script == "acquire":
					return reply(m, codePromised, fmt.Sprint(8+m), 1000), nil
				case script == "release":
					released <- struct{}{}
					return int64(1), nil
				case tt.confirms[m] == 'e':
					return nil, context.DeadlineExceeded
				}
				return map[byte]any{'y': int64(1), 'n': int64(0)}[tt.confirms[m]], nil
			})
			g, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Second})
			if g.Token != tt.want || (err == nil) != (tt.want > 0) || err != nil && !errors.Is(err, locking.ErrUnreachable) {
				t.Errorf("confirmed %s: token %d, %v; want %d", tt.confirms, g.Token, err, tt.want)
			}
			d.Wait()
			if taken := len(released) > 0; taken != tt.takeBack {
				t.Errorf("confirmed %s: taken back: %t; want %t", tt.confirms, taken, tt.takeBack)
			}
		})
	}
}

// TestTooSlow: what is granted after its validity is not granted.
func TestTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := fakeDriver(t, func(m int, script string) (any, error) {
			time.Sleep(30 * time.Millisecond)
			return reply(m, codePromised, "7", 20), nil
		})
		_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: 32 * time.Millisecond})
		if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "longer than ttl") {
			t.Errorf("got %v", err)
		}
	})
}

func TestTooLong(t *testing.T) {
	d := fakeDriver(t, nil)
	_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: 40 * time.Second, Delay: 21 * time.Second})
	var refused *locking.InputError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "1m1s together, more than Config.MaxTTL 1m0s") {
		t.Errorf("got %v", err)
	}
}

// TestSameServerTwice: two names that lead to one server fail the acquisition
// that sees it, and nothing else.
func TestSameServerTwice(t *testing.T) {
	var mixed atomic.Bool
	mixed.Store(true)
	d := fakeDriver(t, func(m int, script string) (any, error) {
		switch {
		case script != "acquire":
			return int64(1), nil
		case mixed.Load():
			m = 0
		}
		return reply(m, codePromised, "7", 1000), nil
	})
	acquire := func() error {
		_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Second})
		return err
	}
	var refused *locking.InputError
	for range 2 {
		if err := acquire(); !errors.As(err, &refused) || !strings.Contains(err.Error(), "same server") {
			t.Fatalf("got %v; want an *InputError: two votes of one server are one", err)
		}
	}
	_, renew := d.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "o", Token: 7, TTL: time.Second}})
	if err := errors.Join(renew, d.Release(t.Context(), "a", "o"), d.Revoke(t.Context(), "a", 7)); err != nil {
		t.Errorf("a lock that was granted before cannot be renewed, released and revoked: %v", err)
	}
	mixed.Store(false)
	if err := acquire(); err != nil {
		t.Errorf("when the names lead to three servers again: %v", err)
	}
}

// TestBootstrapOfHungClient: one client that ignores its context holds nobody up.
func TestBootstrapOfHungClient(t *testing.T) {
	for _, hung := range []string{"node", "repair"} {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			defer close(hang)
			clients := fakeClients(func(m int, script string) (any, error) {
				if m == 0 && script == hung {
					<-hang
				}
				if script == "node" {
					return []any{fmt.Sprint("run", m), int64(0), "0", "1000", int64(0)}, nil
				}
				return int64(1), nil
			})
			done := make(chan error, 1)
			go func() { done <- Bootstrap(t.Context(), clients, Config{}) }()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("%s: %v; two of three are enough", hung, err)
				}
			case <-time.After(2*bootstrapWithin + time.Millisecond):
				t.Errorf("%s: Bootstrap still waits for one of three masters", hung)
			}
		})
	}
}

// TestVotes has masters answer renewals, releases and revocations: y yes, n no,
// a amnesiac, e unreachable, s silent.
func TestVotes(t *testing.T) {
	for answers, want := range map[string]string{
		"yyy": "yes", "yys": "yes", "yye": "yes", "yya": "yes", "yyn": "yes",
		"nnn": "no", "nns": "no", "nny": "no", "nna": "no",
		"yna": "unknown", "yns": "unknown", "sss": "unknown", "eee": "unknown", "yee": "unknown", "naa": "unknown", "nes": "unknown",
	} {
		synctest.Test(t, func(t *testing.T) {
			d := fakeDriver(t, func(m int, _ string) (any, error) {
				switch answers[m] {
				case 'y':
					return int64(1), nil
				case 'n':
					return int64(0), nil
				case 'a':
					return int64(codeForgot), nil
				case 'e':
					return nil, context.DeadlineExceeded
				}
				time.Sleep(time.Hour)
				return nil, errors.New("late")
			})
			renewed, err := d.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "o", Token: 7, TTL: time.Second}})
			got := locking.Unknown
			if err == nil {
				got = renewed[0]
			} else if !errors.Is(err, locking.ErrUnreachable) {
				t.Errorf("renew %s: %v", answers, err)
			}
			if wanted := map[string]locking.RenewAnswer{"yes": locking.Renewed, "no": locking.Gone, "unknown": locking.Unknown}[want]; got != wanted {
				t.Errorf("renew %s: %v; want %v", answers, got, wanted)
			}
			for what, err := range map[string]error{"release": d.Release(t.Context(), "a", "o"), "revoke": d.Revoke(t.Context(), "a", 7)} {
				if wanted := map[string]error{"yes": nil, "no": locking.ErrLost, "unknown": locking.ErrUnreachable}[want]; !errors.Is(err, wanted) {
					t.Errorf("%s %s: %v; want %v", what, answers, err, wanted)
				}
			}
			time.Sleep(9 * time.Hour)
		})
	}
}

// TestHungClientIsBounded: a client that ignores its context holds nobody up, and
// at some point is not asked any more.
func TestHungClientIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		d := fakeDriver(t, func(m int, script string) (any, error) {
			if m == 0 {
				<-hang
			}
			if script == "acquire" {
				return reply(m, codePromised, "7", 1000), nil
			}
			return int64(1), nil
		})
		begun := time.Now()
		for i := range mostCalls + 50 {
			r := locking.Request{Name: "a", Owner: fmt.Sprint(i), TTL: time.Second}
			if _, err := d.Acquire(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if err := d.Release(t.Context(), r.Name, r.Owner); err != nil {
				t.Fatal(err)
			}
		}
		if spent := time.Since(begun); spent > 0 {
			t.Errorf("the hung client held others up for %s", spent)
		}
		if n := d.masters[0].calls.Load(); n != mostCalls {
			t.Errorf("%d calls to the hung master are under way; want %d", n, mostCalls)
		}
		close(hang)
		d.Wait()
		for _, m := range d.masters {
			if n := m.calls.Load(); n != 0 {
				t.Errorf("%d calls to %s are still counted", n, m.addr)
			}
		}
		if n := len(d.lanes.name); n != 0 {
			t.Errorf("%d lanes are still open", n)
		}
	})
}

// TestTopUpCountsAsGrant: an older grant is not put back behind it, though its
// owner's next request was withdrawn.
func TestTopUpCountsAsGrant(t *testing.T) {
	e, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	client := e.Client()
	t.Cleanup(func() { _ = client.Close() })
	ctx, keys := t.Context(), lockKeys("m", "a")
	run := func(s *redisconn.Script, keys []string, args ...any) int {
		t.Helper()
		code, err := s.Run(ctx, client, keys, args...).Int()
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	run(repairScript, keys[2:], e.RunID(), 0, -1, 60000)
	const older, newer = 5, 10
	if err := acquireScript.Run(ctx, client, keys, "older", 60000, 1, older, 0, 0, "", stateKeep, 60000).Err(); err != nil {
		t.Fatal(err)
	}
	client.Del(ctx, keys[0])
	if run(topupScript, keys, "newer", newer, 60000, stateKeep) != codeYes || run(releaseScript, keys, "newer", 9, 0, stateKeep) != codeYes {
		t.Fatal("the newer grant was not put in place and withdrawn")
	}
	if run(topupScript, keys, "older", older, 60000, stateKeep) == codeYes {
		t.Errorf("token %d came back behind token %d", older, newer)
	}
}

// TestScriptsFollowModel gives the scripts, on both servers, and the model of the
// simulation the same random operations, and compares every answer.
func TestScriptsFollowModel(t *testing.T) {
	e, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	emb := e.Client()
	t.Cleanup(func() { _ = emb.Close() })
	for where, client := range map[string]*redis.Client{"redis-server": redistest.Start(t).Client(t), "embedded": emb} {
		ctx := t.Context()
		run := 0
		look := func() *node {
			reply, err := nodeScript.Run(ctx, client, []string{nodeKey("m")}).Slice()
			if err != nil {
				t.Fatal(err)
			}
			n, err := readNode(reply)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		repair := func(floor locking.Token) {
			if code, err := repairScript.Run(ctx, client, []string{nodeKey("m")}, look().runID, floor, -1, 60000).Int(); err != nil || code != 1 {
				t.Fatal(code, err)
			}
		}
		repair(0)
		model, rng := &simMaster{}, rand.New(rand.NewPCG(9, 9))
		for i := range 1500 {
			name, owner := rng.IntN(2), "owner"+string(rune('a'+rng.IntN(3)))
			keys := lockKeys("m", "lock"+string(rune('a'+name)))
			hint := locking.Token(i*2 + rng.IntN(100))
			var got, want string
			kind := rng.IntN(24)
			switch {
			case kind < 12:
				reply, err := acquireScript.Run(ctx, client, keys, owner, 60000, i, hint, 0, 0, "", stateKeep, 60000).Slice()
				if err != nil {
					t.Fatal(err)
				}
				p, err := readPromise(reply)
				if err != nil {
					t.Fatal(err)
				}
				w := model.promise(name, owner, hint)
				got, want = fmt.Sprint(p.code, p.token, p.held.owner), fmt.Sprint(w.code, w.token, w.held.owner)
				if p.code == codeReturned { // the model knows no owner twice
					client.HDel(ctx, keys[1], "o")
					model.release(name, owner)
					continue
				}
			case kind < 16:
				token := model.locks[name].token + locking.Token(rng.IntN(5)-2)
				code, err := confirmScript.Run(ctx, client, keys, owner, token, stateKeep).Int()
				if err != nil {
					t.Fatal(err)
				}
				got, want = fmt.Sprint(code), fmt.Sprint(model.confirm(name, owner, token, rules{}))
			case kind < 20:
				if err := releaseScript.Run(ctx, client, keys, owner, i, 0, stateKeep).Err(); err != nil {
					t.Fatal(err)
				}
				model.release(name, owner)
			case kind < 22:
				client.Del(ctx, keys[0])
				model.locks[name].owner = ""
			case kind == 22: // emptied: the marker goes, and with it the vote
				client.FlushAll(ctx)
				model.restartEmpty(0, rules{})
			default:
				if model.votes() {
					continue
				}
				repair(hint)
				model.voting, model.largest = model.life, max(model.largest, hint)
			}
			n := look()
			got += fmt.Sprint(" ", n.votes, n.largest)
			want += fmt.Sprint(" ", model.votes(), model.largest)
			if got != want {
				t.Fatalf("%s, step %d, kind %d: got %s; the model says %s", where, i, kind, got, want)
			}
			run++
		}
		t.Logf("%s: %d steps agree", where, run)
	}
}
