package schedtest

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/move"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestMoves moves a namespace under load, in virtual time. The moving program is killed again and
// again before or after one of its commands, and sometimes gives up half way and begins anew, while
// nodes are killed and started. Then every job must have run each of its ticks once, by increasing
// tokens, and the old Redis must refuse.
func TestMoves(t *testing.T) {
	from, n := *firstSeed, cmp.Or(*seeds, 4)
	if *oneSeed != 0 {
		from, n = *oneSeed, 1
	}
	kills, aborts, ticks := 0, 0, 0
	for seed := from; seed < from+uint64(n) && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMoving(t, seed)
			m.play()
			kills, aborts, ticks = kills+m.kills, aborts+m.aborts, ticks+m.report.Ticks
			if t.Failed() {
				t.Logf("again, with its story: -run TestMoves -seed %d", seed)
			}
		})
	}
	t.Logf("%d moves from seed %d on: %d ticks; the mover was killed %d times and gave up %d times", n, from, ticks, kills, aborts)
}

// step runs one step of the move by processes that are killed, until one completes it.
func (m *moving) step(name string, do func(*move.Mover) error) {
	for try := 0; ; try++ {
		e := &ender{}
		if try < 3 && m.rng.IntN(3) > 0 {
			e.at, e.after = 1+m.rng.IntN(60), m.rng.IntN(2) == 0
		}
		from, to := m.from.Client(), m.to.Client()
		from.AddHook(e)
		to.AddHook(e)
		mover, err := move.New(from, to, move.Config{Partitions: m.partitions, FromName: "old", ToName: "new"})
		if err == nil {
			err = do(mover)
		}
		_, _ = from.Close(), to.Close()
		m.say("move %s: %d commands, killed at %d: %v", name, e.count, e.at, err)
		switch {
		case err == nil:
			return
		case e.at != 0 && e.count >= e.at:
			m.kills++
		case name == "seal" && errors.Is(err, ledger.ErrRefused) && try < 20: // something still ran
		default:
			m.t.Errorf("move %s: %v", name, err)
			return
		}
		time.Sleep(time.Duration(m.rng.Int64N(int64(time.Second))))
	}
}

func (m *moving) seal(o move.SealOptions) func(*move.Mover) error {
	return func(v *move.Mover) error { _, err := v.Seal(m.t.Context(), o); return err }
}

// play plays it all and judges.
func (m *moving) play() {
	for range 2 + m.rng.IntN(3) {
		m.start()
	}
	nap := func(most time.Duration) { time.Sleep(time.Duration(m.rng.Int64N(int64(most)))) }
	time.Sleep(7 * time.Second)
	nap(time.Second)
	m.shut = time.Now()
	for m.rng.IntN(3) == 0 && m.aborts < 2 { // it is given up
		m.step("seal", m.seal(move.SealOptions{Drain: 10 * time.Second}))
		if m.rng.IntN(2) == 0 {
			m.step("copy", func(v *move.Mover) error { _, err := v.Copy(m.t.Context()); return err })
		}
		m.step("abort", func(v *move.Mover) error { _, err := v.Abort(m.t.Context()); return err })
		m.aborts++
		nap(4 * time.Second)
	}
	if m.rng.IntN(2) == 0 && len(m.procs) > 2 {
		m.kill(m.procs[m.rng.IntN(len(m.procs))])
	}
	m.cancels = m.rng.IntN(4) == 0
	m.step("seal", m.seal(move.SealOptions{Drain: 10 * time.Second, CancelRunning: m.cancels}))
	m.sealed = time.Now()
	if m.rng.IntN(2) == 0 {
		m.start()
	}
	m.step("copy", func(v *move.Mover) error { _, err := v.Copy(m.t.Context()); return err })
	m.step("open", func(v *move.Mover) error { _, err := v.Open(m.t.Context()); return err })
	m.opened = time.Now()
	if m.rng.IntN(2) == 0 {
		m.start() // as if nothing had happened
	}
	time.Sleep(15 * time.Second)
	m.refuses()
	for _, p := range m.procs {
		p.stop()
	}
	for _, p := range m.procs {
		<-p.done
	}
	m.judge()
	for _, f := range m.report.Findings {
		m.t.Error(f)
	}
	if m.report.Ticks < 150 {
		m.t.Errorf("only %d ticks were judged", m.report.Ticks)
	}
	if m.t.Failed() {
		m.t.Log("\n" + strings.Join(m.story, "\n"))
	}
	m.close()
}

func (m *moving) close() {
	m.from.Close()
	m.to.Close()
	time.Sleep(3 * time.Second) // connections in the making end
}

// TestMovesByHand is the control: without a move, a copy of all keys and new nodes while the old
// ones go on, ticks run twice.
func TestMovesByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMoving(t, 1)
		m.start()
		time.Sleep(6500 * time.Millisecond)
		m.shut, m.opened = time.Now(), time.Now()
		m.to.Restore(m.from.Snapshot())
		m.from, m.to = m.to, m.from
		m.start()
		time.Sleep(15 * time.Second)
		for _, p := range m.procs {
			p.stop()
			<-p.done
		}
		m.judge()
		if !slices.ContainsFunc(m.report.Findings, func(f audit.Finding) bool { return f.Kind == audit.KindDouble }) {
			t.Errorf("found %v; want ticks that ran twice", m.report.Findings)
		}
		m.close()
	})
}

// refuses checks that the old Redis refuses callers after the move.
func (m *moving) refuses() {
	client := m.from.Client()
	defer client.Close()
	i, err := ops.New(client, "")
	if err == nil {
		_, err = i.Trigger(m.t.Context(), "job-0", ops.TriggerOptions{})
	}
	if !errors.Is(err, ledger.ErrClosed) {
		m.t.Errorf("a trigger at the old Redis after the move: %v, want %v", err, ledger.ErrClosed)
	}
}
