package redlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

// TestOwnerVotes has masters say who holds a lock: x and y with token 7, X is x with
// token 9, f free, a free and without its state, e unreachable. The owner and the
// token that are named are those of a majority, and free is what a majority says is
// free: a lock that is taken over while the masters are asked looks split.
func TestOwnerVotes(t *testing.T) {
	for answers, want := range map[string]string{
		"xxx": "x 7", "xxe": "x 7", "xxf": "x 7", "xxX": "x 7", "XXx": "x 9", "xxy": "x 7",
		"fff": "free", "ffe": "free", "ffx": "free",
		"xXe": "unknown", "xXf": "unknown", "xyf": "unknown", "xyX": "unknown", "xfe": "unknown", "xfa": "unknown",
	} {
		synctest.Test(t, func(t *testing.T) {
			d := fakeDriver(t, func(m int, _ string) (any, error) {
				switch answers[m] {
				case 'x':
					return []any{"7:1:x", int64(500), "", int64(1)}, nil
				case 'X':
					return []any{"9:1:x", int64(500), "", int64(1)}, nil
				case 'y':
					return []any{"7:1:y", int64(500), "", int64(1)}, nil
				case 'f':
					return []any{"", int64(0), "", int64(1)}, nil
				case 'a':
					return []any{"", int64(0), "", int64(0)}, nil
				}
				return nil, context.DeadlineExceeded
			})
			o, err := d.Owner(t.Context(), "a")
			got := "free"
			switch {
			case errors.Is(err, locking.ErrUnreachable):
				got = "unknown"
			case err != nil:
				got = err.Error()
			case o.Held() && o.Token == 7:
				got = o.Owner + " 7"
			case o.Held() && o.Token == 9:
				got = o.Owner + " 9"
			}
			if got != want {
				t.Errorf("%s: %s; want %s", answers, got, want)
			}
		})
	}
}

// TestAskedAgain: an owner that asks again gets the token that it was granted, also
// from a quorum in which one master has promised it a larger one.
func TestAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clients []redis.UniversalClient
		var nets []*redistest.Net
		for _, name := range []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"} {
			e, err := redistest.Embed()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			o, net := e.Options(), new(redistest.Net)
			o.Addr = name
			c := net.Client(o)
			t.Cleanup(func() { _ = c.Close() })
			clients, nets = append(clients, c), append(nets, net)
		}
		if err := Bootstrap(t.Context(), clients, Config{}); err != nil {
			t.Fatal(err)
		}
		d, err := NewDriver(clients, Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Wait)
		if err := clients[2].HIncrBy(t.Context(), nodeKey(DefaultNamespace), "h", 100).Err(); err != nil {
			t.Fatal(err) // as if it had granted other locks
		}
		r := locking.Request{Name: "a", Owner: "o", TTL: 30 * time.Second}
		ask := func(slow int) locking.Grant {
			t.Helper()
			nets[slow].Delay(5 * time.Millisecond)
			defer nets[slow].Delay(0)
			g, err := d.Acquire(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			d.Wait()
			return g
		}
		first := ask(2)
		if again := ask(0); again.Token != first.Token || !again.Asked.After(first.Asked) {
			t.Errorf("asked again: token %d at %s; want %d, from later on", again.Token, again.Asked, first.Token)
		}
		if err := d.Release(t.Context(), r.Name, r.Owner); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Acquire(t.Context(), r); !errors.Is(err, locking.ErrLost) {
			t.Errorf("asked again after a release: %v; want ErrLost", err)
		}
	})
}

// argsHook notes the arguments of scripts.
type argsHook struct{ seen chan []any }

func (h argsHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h argsHook) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		h.seen <- cmd.Args()
		cmd.SetErr(context.DeadlineExceeded)
		return context.DeadlineExceeded
	}
}

func (h argsHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestOneClock: all masters are told one and the same time, else hardly two of
// them would promise the same token, and each acquisition took two round trips.
func TestOneClock(t *testing.T) {
	var clients []redis.UniversalClient
	hook := argsHook{make(chan []any, 3)}
	for _, addr := range []string{"a:1", "b:1", "c:1"} {
		c := redis.NewClient(redistest.ClientOptions(addr))
		t.Cleanup(func() { _ = c.Close() })
		c.AddHook(hook)
		clients = append(clients, c)
	}
	d, err := NewDriver(clients, Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Second})
	d.Wait()
	times := make(map[any]bool)
	for range clients {
		const clock = 3 + 3 + 3 // behind EVALSHA, digest, number of keys, the keys, and three more
		times[(<-hook.seen)[clock]] = true
	}
	if len(times) != 1 {
		t.Errorf("the masters were told %d times: %v", len(times), times)
	}
}

// TestGoneForgetsItsOwnToken: when an older grant of an owner is gone, the later one
// is still known; when that is gone, nothing is.
func TestGoneForgetsItsOwnToken(t *testing.T) {
	d := fakeDriver(t, func(int, string) (any, error) { return int64(codeFree), nil })
	d.grants.add("o", 9, time.Minute)
	for _, step := range []struct{ gone, left locking.Token }{{7, 9}, {9, 0}} {
		answers, err := d.Renew(t.Context(), []locking.Renewal{{Name: "a", Owner: "o", Token: step.gone, TTL: time.Minute}})
		if err != nil || answers[0] != locking.Gone {
			t.Fatal(answers, err)
		}
		if got := d.grants.token("o"); got != step.left {
			t.Errorf("token %d is gone: the driver remembers %d; want %d", step.gone, got, step.left)
		}
	}
}
