package move

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var stride = flag.Int("move.stride", 3, "how many calls lie between two at which a move is cut")

// cut fails one call of the clients that it hooks: before the call is sent, or after it was carried
// out. It also records the called scripts.
type cut struct {
	mu    sync.Mutex
	calls int
	at    int // 0 for none
	after bool
	hit   bool
	wrote bool // the call that was cut could write
	sent  []sent
}

type sent struct {
	client redis.UniversalClient
	args   []any
}

func (c *cut) arm(at int, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.at, c.after, c.hit, c.wrote, c.sent = 0, at, after, false, false, nil
}

func (c *cut) call(client redis.UniversalClient, cmds []redis.Cmder, next func() error) error {
	c.mu.Lock()
	c.calls++
	hit := c.calls == c.at
	c.hit = c.hit || hit
	for _, cmd := range cmds {
		if strings.HasPrefix(cmd.Name(), "eval") {
			c.sent = append(c.sent, sent{client, cmd.Args()})
			c.wrote = c.wrote || hit
		}
	}
	c.mu.Unlock()
	if hit && !c.after {
		return errCut
	}
	err := next()
	if hit {
		return errCut
	}
	return err
}

func (c *cut) hook(client redis.UniversalClient) hook {
	return func(cmds []redis.Cmder, next func() error) error { return c.call(client, cmds, next) }
}

// stage is two Redis, the first with a namespace in it, and clients that can be cut.
type stage struct {
	*testing.T
	ea, eb *redistest.Embedded
	a, b   *redis.Client // to look with
	m      *Mover        // over clients that are cut
	cut    *cut
	begin  redistest.Snapshot
	before map[string]string // all keys of the old side
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, cut: &cut{}}
	s.ea, s.a = redistest.StartEmbedded(t)
	s.eb, s.b = redistest.StartEmbedded(t)
	populate(t, s.a, 2)
	s.begin, s.before = s.ea.Snapshot(), dump(t, s.a)
	cutA, cutB := s.ea.Client(), s.eb.Client()
	t.Cleanup(func() { _, _ = cutA.Close(), cutB.Close() })
	cutA.AddHook(s.cut.hook(s.a))
	cutB.AddHook(s.cut.hook(s.b))
	s.m = mover(t, cutA, cutB, Config{Partitions: 3})
	return s
}

// reset makes everything as it was before the move.
func (s *stage) reset() {
	s.ea.Restore(s.begin)
	s.eb.Mini().FlushAll()
}

func (s *stage) steps() []func(context.Context) (Status, error) {
	return []func(context.Context) (Status, error){
		func(ctx context.Context) (Status, error) { return s.m.Seal(ctx, SealOptions{Drain: -1}) }, s.m.Copy, s.m.Open,
	}
}

// through does the steps, each once more when it was cut.
func (s *stage) through(steps ...func(context.Context) (Status, error)) {
	s.Helper()
	for i, do := range steps {
		_, err := do(s.Context())
		if err != nil && s.cut.hit && errors.Is(err, errCut) {
			_, err = do(s.Context())
		}
		if err != nil {
			s.Fatalf("step %d, cut at call %d (after: %t): %v", i, s.cut.at, s.cut.after, err)
		}
	}
}

// done checks that the namespace is at the new side, whole, and nowhere else.
func (s *stage) done(name string) {
	s.Helper()
	if d := differ(content(s.before), content(dump(s, s.b))); len(d) > 0 {
		s.Fatalf("%s: %d differences:\n%s", name, len(d), strings.Join(d, "\n"))
	}
	if here, there := gatesOf(s, s.a), gatesOf(s, s.b); here["sealed"] != 2 || there["open"] != 3 || len(here)+len(there) != 2 {
		s.Fatalf("%s: gates %v and %v", name, here, there)
	}
	if st := must(s.m.Status(s.Context())); st.Next != NextDone || st.From.State != ledger.MoveMoved || st.To.State != ledger.MoveOpen {
		s.Fatalf("%s: %+v", name, st)
	}
}

// undone: the old side is open and as it was, the new one has nothing but marks.
func (s *stage) undone(name string) {
	s.Helper()
	after, gates := dump(s, s.a), map[string]string{}
	for key := range after {
		gates[key] = after[key]
		if strings.HasSuffix(key, "}:gate") || strings.HasSuffix(key, ":control undone") {
			delete(after, key)
		}
	}
	want := make(map[string]string)
	for key, value := range s.before {
		if !strings.HasSuffix(key, "}:gate") {
			want[key] = value
		}
	}
	if d := differ(want, after); len(d) > 0 {
		s.Fatalf("%s: the old side is not as it was:\n%s", name, strings.Join(d, "\n"))
	}
	for key, value := range s.before {
		if now := gates[key]; strings.HasSuffix(key, "}:gate") && !strings.HasPrefix(now, strings.TrimSuffix(value, "||")) {
			s.Fatalf("%s: gate %q was %q", name, now, value)
		}
	}
	for key, value := range dump(s, s.b) {
		if !strings.Contains(key, ":control ") && (!strings.HasSuffix(key, "}:gate") || !strings.Contains(value, "|burnt|")) {
			s.Fatalf("%s: the new side has %s: %q", name, key, value)
		}
	}
	if here := gatesOf(s, s.a); here["open"] != 2 {
		s.Fatalf("%s: gates %v", name, here)
	}
}

// late sends every script of the list once more, and returns the changes.
func (s *stage) late(list []sent) []string {
	s.Helper()
	a, b := dump(s, s.a), dump(s, s.b)
	for _, c := range list {
		_ = c.client.(*redis.Client).Do(s.Context(), c.args...).Err() // refused or not, only the effect counts
	}
	return append(differ(a, dump(s, s.a)), differ(b, dump(s, s.b))...)
}

// TestKilled cuts the move before and after every call of every step, and goes on with the same
// steps, or undoes it. When the other side has begun to open, the undoing is refused, and the move
// goes on. Never are both sides open. Scripts sent again afterwards change nothing.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.through(s.steps()...) // servers know the scripts from here on
	s.reset()
	s.cut.arm(0, false)
	s.through(s.steps()...)
	calls, refused, undone := s.cut.calls, 0, 0
	s.done("without a cut")
	if d := s.late(s.cut.sent); len(d) > 0 || len(s.cut.sent) < 20 {
		t.Fatalf("%d scripts that came late changed %v", len(s.cut.sent), d)
	}
	for at := 1; at <= calls; at += *stride {
		for _, after := range []bool{false, true} {
			s.reset()
			s.cut.arm(at, after)
			name := fmt.Sprintf("cut at call %d, after: %t", at, after)
			s.through(s.steps()...)
			if !s.cut.hit {
				t.Fatalf("call %d was not cut", at)
			}
			s.done(name)
			if d := s.late(s.cut.sent); len(d) > 0 {
				t.Fatalf("%s: %d scripts that came late changed %v", name, len(s.cut.sent), d)
			}
			s.reset()
			s.cut.arm(at, after)
			if s.aborted(name) {
				undone++
			} else {
				refused++
			}
			if !s.cut.wrote {
				break // after a read is the same as before the next call
			}
		}
	}
	if undone < calls / *stride / 2 || refused == 0 {
		t.Errorf("undone %d times, refused %d times; %d calls", undone, refused, calls)
	}
	t.Logf("%d calls, every %d cut before and after: undone %d times, refused %d times", calls, *stride, undone, refused)
}

// aborted does the steps until one is cut, and undoes them. It reports whether the undoing was
// accepted; otherwise the move goes on to its end.
func (s *stage) aborted(name string) (undone bool) {
	s.Helper()
	for _, do := range s.steps() {
		if _, err := do(s.Context()); err != nil {
			break
		}
	}
	if here, there := gatesOf(s, s.a), gatesOf(s, s.b); here["open"] > 0 && there["open"] > 0 {
		s.Fatalf("%s: both sides are open: %v, %v", name, here, there)
	}
	switch _, err := s.m.Abort(s.Context()); {
	case err == nil:
		s.undone(name)
		if d := s.late(s.cut.sent); len(d) > 0 {
			s.Fatalf("%s: scripts that came late changed %v", name, d)
		}
		if st := must(s.m.Status(s.Context())); st.Next != NextSeal {
			s.Fatalf("%s: %+v", name, st)
		}
	case strings.Contains(err.Error(), "no move from"):
		s.undone(name)
	case errors.Is(err, ledger.ErrRefused):
		s.through(s.m.Open)
		s.done(name)
		return false
	default:
		s.Fatalf("%s: %v", name, err)
	}
	s.through(s.steps()...) // and again, to the end
	s.done(name)
	return true
}

// TestAbortKilled cuts the abort of a sealed and copied move at every call.
func TestAbortKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	prepare := s.steps()[:2]
	s.through(prepare...)
	s.through(s.m.Abort)
	s.reset()
	s.through(prepare...)
	a, b := s.ea.Snapshot(), s.eb.Snapshot()
	s.cut.arm(0, false)
	s.through(s.m.Abort)
	calls := s.cut.calls
	for at := 1; at <= calls; at += *stride {
		for _, after := range []bool{false, true} {
			s.ea.Restore(a)
			s.eb.Restore(b)
			s.cut.arm(at, after)
			name := fmt.Sprintf("cut at call %d, after: %t", at, after)
			if _, err := s.m.Abort(t.Context()); err == nil {
				t.Fatalf("%s: not cut", name)
			}
			if here, there := gatesOf(t, s.a), gatesOf(t, s.b); here["open"] > 0 && there["burnt"] != 3 {
				t.Fatalf("%s: unsealed before all is burnt: %v, %v", name, here, there)
			}
			_, err := s.m.Open(t.Context())
			if _, again := s.m.Abort(t.Context()); again != nil {
				if err == nil && errors.Is(again, ledger.ErrRefused) {
					s.done(name) // it had not begun
					continue
				}
				t.Fatalf("%s: %v, after %v", name, again, err)
			}
			s.undone(name)
			if !s.cut.wrote {
				break
			}
		}
	}
	t.Logf("%d calls, each cut before and after", calls)
}

// TestAbortUnreachable: the seal is not lifted while the other side is unreachable.
func TestAbortUnreachable(t *testing.T) {
	s := newStage(t)
	s.through(s.steps()[:2]...)
	s.eb.Stop()
	before := dump(t, s.a)
	_, err := s.m.Abort(t.Context())
	wants(t, "abort", err, "before the seal is lifted")
	if d := differ(before, dump(t, s.a)); len(d) > 0 {
		t.Errorf("refused, and yet %v", d)
	}
	if st, err := s.m.Status(t.Context()); err == nil || st.From.State != ledger.MoveSealed || len(st.Problems) != 1 {
		t.Errorf("status of one side: %+v, %v", st, err)
	}
	if err := s.eb.Restart(); err != nil {
		t.Fatal(err)
	}
	s.eb.Mini().FlushAll() // it has lost all, so the move is burnt there first
	for range 10 {         // connections that broke
		if _, _, err = s.m.sides(t.Context()); err == nil {
			break
		}
	}
	s.through(s.m.Abort)
	s.undone("lost")
	if st := must(s.m.Status(t.Context())); st.To.State != ledger.MoveBurnt {
		t.Errorf("%+v", st)
	}
}
