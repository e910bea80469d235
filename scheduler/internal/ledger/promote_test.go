package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
)

const oneDay = 24 * time.Hour

// promoter makes the calls of promotions on one server.
type promoter struct {
	t   *testing.T
	ctx context.Context
	r   *rig
}

// promoteConfig lets Begin go with a steered clock: Begin reads the server's own time.
var promoteConfig = ledger.Config{Partitions: 2, Generation: "blue", MaxSkew: 100 * 365 * oneDay}

func (s *promoter) is(what string, got, want any) {
	s.t.Helper()
	if !reflect.DeepEqual(got, want) {
		s.t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// keeps makes a call that must be refused with an error, nil for a mere answer, and change nothing.
func (s *promoter) keeps(what string, want error, do func() error) {
	s.t.Helper()
	before := dump(s.t, s.r.client)
	if err := do(); !errors.Is(err, want) {
		s.t.Errorf("%s: %v, want %v", what, err, want)
	}
	if diff := differences(before, dump(s.t, s.r.client)); len(diff) > 0 {
		s.t.Errorf("%s has changed %s", what, strings.Join(diff, "\n"))
	}
}

func (s *promoter) does(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
}

func (s *promoter) control(fields ...string) []any {
	return s.r.client.HMGet(s.ctx, ledger.NamespaceKeys(testNS).Control, fields...).Val()
}

func (s *promoter) setControl(field, value string) {
	s.does("set", s.r.client.HSet(s.ctx, ledger.NamespaceKeys(testNS).Control, field, value).Err())
}

func (s *promoter) gates() (all []string) {
	for _, k := range s.r.led.Keys {
		all = append(all, s.r.client.Get(s.ctx, k.Gate).Val())
	}
	return all
}

func (s *promoter) setGates(stored ...string) {
	for i, k := range s.r.led.Keys {
		s.does("set", setGate(s.ctx, s.r.client, k.Gate, stored[i]))
	}
}

// begin begins a promotion, and wants its epoch.
func (s *promoter) begin(p ledger.Promotion, epoch int64, resumed bool) ledger.Promotion {
	got, err := define.Begin(s.ctx, s.r.led, p)
	s.does("begin", err)
	s.is("begun "+p.Text(), []any{got.Epoch, got.Resumed}, []any{epoch, resumed})
	return got
}

// late is a copy of the begin script's call by a caller with these epochs.
func (s *promoter) late(p ledger.Promotion, least, seen, off int64) string {
	args := map[string]any{"now": s.r.now + off, "skew": 1000, "generation": p.Generation, "pattern": p.Pattern, "cancel": p.Cancel, "least": least, "seen": ledger.Spell(seen)}
	reply, err := script("begin").Call(s.ctx, s.r.client, ledger.NamespaceTag(testNS), "", args).Slice()
	s.does("begin", err)
	return strings.Trim(fmt.Sprint(reply), "[]")
}

func (s *promoter) beginning() {
	green, some := ledger.Promotion{Generation: "green"}, ledger.Promotion{Generation: "blue", Pattern: "a*"}
	s.begin(green, 1, false)
	s.is("control", s.control("generation", "epoch", "promoting"), []any{"green", "1", "1|1|green||"})
	s.keeps("begun again", nil, func() error { s.begin(green, 1, true); return nil })
	s.keeps("begin of some amid all", ledger.ErrRefused, func() error { _, err := define.Begin(s.ctx, s.r.led, some); return err })
	_, err := define.Promoted(s.ctx, s.r.led, ledger.Promotion{Generation: "green", Epoch: 1})
	s.does("end", err)
	s.begin(some, 2, false)
	s.is("control, of some jobs", s.control("generation", "epoch", "promoting"), []any{"green", "2", "1|2|blue|a*|"})
	s.keeps("a late begin", nil, func() error { s.is("late", s.late(green, 0, 0, 0), "stale 2"); return nil })
	s.keeps("a late begin that had seen the first", nil, func() error { s.is("late", s.late(green, 0, 1, 0), "stale 2"); return nil })
	s.begin(ledger.Promotion{Generation: "blue", Pattern: "a*", Cancel: true}, 3, false)
	s.keeps("begin by a wrong clock", nil, func() error {
		s.is("clock", s.late(green, 0, 3, 1001), "clock "+ledger.Spell(s.r.now))
		s.is("clock", s.late(green, 0, 3, -1001), "clock "+ledger.Spell(s.r.now))
		return nil
	})
	s.setGates("1|7|green|open||", "1|2|green|open||") // the control record was lost, and is of before
	s.begin(ledger.Promotion{Generation: "blue", Pattern: "a*", Cancel: true}, 8, false)
	for state, shut := range map[string]string{ledger.MoveSealing: "sealed", ledger.MoveSealed: "sealed", ledger.MoveMoved: "sealed", ledger.MoveFilling: "filling", ledger.MoveOpening: "filling", ledger.MoveBurnt: "burnt"} {
		s.setControl("move", "1|"+move1+"|from|"+state+"|10.0.0.7:6379|1")
		s.keeps("begin while a move is "+state, ledger.ErrClosed, func() error {
			_, err := define.Begin(s.ctx, s.r.led, green)
			var closed *ledger.ClosedError
			if errors.As(err, &closed) {
				s.is("closed", *closed, ledger.ClosedError{shut, move1, "10.0.0.7:6379"})
			}
			return err
		})
	}
	s.setControl("move", "1|"+move1+"|to|open|10.0.0.7:6379|1")
	s.begin(green, 9, false)
	s.does("lose", s.r.client.Del(s.ctx, ledger.NamespaceKeys(testNS).Control).Err())
	s.keeps("begin where nothing is", nil, func() error { s.is("begin", s.late(green, 0, 0, 0), "unknown"); return nil })
}

func (s *promoter) raising() {
	led := s.r.led
	p := func(epoch int64, generation, pattern string) ledger.Promotion {
		return ledger.Promotion{Epoch: epoch, Generation: generation, Pattern: pattern}
	}
	s.setGates("", "1|0|blue|open|m1|there")
	s.does("raise", define.Raise(s.ctx, led, p(1, "green", "")))
	s.is("gates", s.gates(), []string{"1|1|green|open||", "1|1|green|open|m1|there"})
	s.keeps("raised again", nil, func() error { return define.Raise(s.ctx, led, p(1, "green", "")) })
	s.does("raise", define.Raise(s.ctx, led, p(2, "blue", "a*")))
	s.is("gates, of some jobs", s.gates(), []string{"1|2|green|open||", "1|2|green|open|m1|there"})
	s.keeps("raised by an older one", ledger.ErrRefused, func() error { return define.Raise(s.ctx, led, p(1, "white", "")) })
	s.does("raise", define.Raise(s.ctx, led, p(10, "white", ""))) // more than 9: they are numbers
	s.keeps("raised by an older one, of one digit", ledger.ErrRefused, func() error { return define.Raise(s.ctx, led, p(9, "green", "")) })
	for _, shut := range []string{"1|10|white|sealed|m1|there", "2|what"} {
		s.setGates(shut, "1|10|white|open||")
		s.keeps("raised where it is closed", ledger.ErrClosed, func() error { return define.Raise(s.ctx, led, p(11, "green", "")) })
	}
	s.setGates("1|10|white|open||", "1|10|white|open||")
}

func (s *promoter) ending() {
	led := s.r.led
	s.does("again", s.r.client.HDel(s.ctx, ledger.NamespaceKeys(testNS).Control, "promoting", "move").Err())
	_, err := led.Restore(s.ctx, "blue")
	s.does("restore", err)
	promoted := func(p ledger.Promotion, want bool) {
		got, err := define.Promoted(s.ctx, led, p)
		s.does("end", err)
		s.is("ended", got, want)
	}
	first := s.begin(ledger.Promotion{Generation: "green"}, 11, false)
	second := s.begin(ledger.Promotion{Generation: "green", Cancel: true}, 12, false)
	s.keeps("ended by an older one", nil, func() error { promoted(first, false); return nil })
	promoted(second, true)
	s.is("control", s.control("promoting", "epoch"), []any{nil, "12"})
	s.keeps("ended again", nil, func() error { promoted(second, false); return nil })
	s.begin(ledger.Promotion{Generation: "green", Cancel: true}, 13, false) // an ended promotion is not resumed
}

func (s *promoter) following() {
	led := s.r.led
	here := led.Keys[led.Partition("up")]
	s.does("set", setGate(s.ctx, s.r.client, here.Gate, "1|10|white|open||"))
	for _, epoch := range []int64{9, 11, 1} { // 1 and 9 in another order as texts
		p := ledger.Promotion{Epoch: epoch}
		s.keeps("follow by another promotion", ledger.ErrRefused, func() error { return follow.Follow(s.ctx, led, p.Epoch, "up", "down") })
	}
	p := ledger.Promotion{Epoch: 10}
	s.does("follow", follow.Follow(s.ctx, led, p.Epoch, "up", "down"))
	s.does("follow", follow.Follow(s.ctx, led, 0, "up", "too"))
	s.is("followers", s.r.client.HGet(s.ctx, here.Followers, "up").Val(), "down,too")
	s.keeps("unfollow by another promotion", ledger.ErrRefused, func() error { return follow.Unfollow(s.ctx, led, 9, "up", "down") })
	s.does("unfollow", follow.Unfollow(s.ctx, led, p.Epoch, "up", "down"))
	s.does("unfollow", follow.Unfollow(s.ctx, led, 0, "up", "too"))
	s.is("followers", s.r.client.Exists(s.ctx, here.Followers).Val(), int64(0))
}

// TestPromoteScripts: a late call, or a call during a move, changes nothing; only the newest
// promotion goes on.
func TestPromoteScripts(t *testing.T) {
	onBoth(t, promoteConfig, func(t *testing.T, r *rig) {
		s := &promoter{t: t, ctx: t.Context(), r: r}
		s.beginning()
		s.raising()
		s.ending()
		s.following()
	})
}
