package sharding

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking/redistest"
)

func TestBeatRefuses(t *testing.T) {
	_, client := embed(t)
	r := NewRoster(client, RosterConfig{})
	tests := []struct {
		name string
		self Member
		want string
	}{
		{"no ID", Member{}, "ID is empty"},
		{"not UTF-8", Member{Node: Node{ID: "a\xff"}}, "UTF-8"},
		{"unknown state", Member{Node: Node{ID: "a"}, State: "resting"}, `state "resting"`},
		{"gone", Member{Node: Node{ID: "a"}, State: StateGone}, `state "gone"`},
		{"too large", Member{Node: Node{ID: "a", Labels: map[string]string{"l": strings.Repeat("x", MaxRecord)}}}, "more than 65536"},
		{"year", Member{Node: Node{ID: "a"}, Started: time.Unix(math.MaxInt32*1000, 0)}, "encode"},
	}
	for _, tt := range tests {
		_, err := r.Beat(t.Context(), tt.self)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
		if got := errors.Is(err, ErrTooLarge); got != (tt.name == "too large") {
			t.Errorf("%s: is ErrTooLarge: %v", tt.name, got)
		}
	}
	if n := client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("refused beats wrote %d keys", n)
	}
}

func TestConfigIsRefused(t *testing.T) {
	_, client := embed(t)
	var sent counter
	client.AddHook(&sent)
	for _, cfg := range []RosterConfig{
		{Namespace: "a}b"}, {Namespace: "{a"},
		{TTL: -time.Second}, {TTL: time.Millisecond}, {TTL: 2 * time.Hour}, {TTL: time.Second + time.Microsecond},
	} {
		r := NewRoster(client, cfg)
		_, err1 := r.Beat(t.Context(), Member{Node: Node{ID: "a"}})
		_, err2 := r.Members(t.Context())
		_, err3 := r.Sets(t.Context(), []string{"x"})
		err4 := r.Leave(t.Context(), "a")
		err5 := r.Announce(t.Context(), SetDigest(nil), nil)
		err6 := r.Drain(t.Context(), "a", Drained{})
		_, err7 := r.Resume(t.Context(), "a")
		_, err8 := r.Drains(t.Context())
		for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8} {
			if err == nil {
				t.Errorf("%+v: call %d was not refused", cfg, i+1)
			}
		}
	}
	if len(sent.names) != 0 {
		t.Errorf("sent %q under a bad config", sent.names)
	}
}

func TestErrorsOfRedisAreWrapped(t *testing.T) {
	server, client := embed(t)
	r := NewRoster(client, RosterConfig{})
	beat(t, r, "a")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Beat(done, Member{Node: Node{ID: "a"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("beat under an ended context: %v", err)
	}
	must(client.Set(t.Context(), r.keys.seen, "x", 0).Result())(t)
	if _, err := r.Beat(t.Context(), Member{Node: Node{ID: "a"}}); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("beat on a key of another type: %v", err)
	}
	server.Stop()
	_, err1 := r.Beat(t.Context(), Member{Node: Node{ID: "a"}})
	_, err2 := r.Members(t.Context())
	_, err3 := r.Sets(t.Context(), []string{"x"})
	err4 := r.Leave(t.Context(), "a")
	err5 := r.Announce(t.Context(), SetDigest(nil), nil)
	err6 := r.Drain(t.Context(), "a", Drained{})
	_, err7 := r.Resume(t.Context(), "a")
	_, err8 := r.Drains(t.Context())
	for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8} {
		if err == nil || !strings.HasPrefix(err.Error(), "sharding: ") || errors.Unwrap(err) == nil {
			t.Errorf("call %d without a server: %v, want a wrapped error", i+1, err)
		}
	}
}

// A beat whose reply was lost has happened; repeating it is right.
func TestLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, other := embed(t)
		var network redistest.Net
		client := network.Client(server.Options())
		defer func() { _ = client.Close() }()
		r := NewRoster(client, RosterConfig{})
		beat(t, r, "a")
		network.LoseReplies(1, "evalsha")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := r.Beat(ctx, Member{Node: Node{ID: "b"}}); err == nil {
			t.Fatal("the lost reply arrived")
		}
		if n := other.HLen(t.Context(), r.keys.roster).Val(); n != 2 {
			t.Errorf("%d records after the lost reply, want 2", n)
		}
		wantMembers(t, beat(t, r, "b"), "a", "b")
	})
}
