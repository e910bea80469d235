package roster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/sharding"

	"github.com/redis/go-redis/v9"
)

// named beats as a node of that name.
func named(t *testing.T, r *Roster, name string) (v View, self Member) {
	t.Helper()
	v = must(r.Beat(t.Context(), Member{Node: sharding.Node{ID: "id-" + name, Name: name}}))(t)
	for _, m := range v.Members {
		if m.Name == name {
			self = m
		}
	}
	return v, self
}

func TestDrain(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		ctx, r := t.Context(), New(client, Config{})
		if v, self := named(t, r, "a"); v.Drained != nil || self.Draining {
			t.Errorf("drained before anybody did it: %+v, %+v", v.Drained, self)
		}
		if err := r.Drain(ctx, "a", Drained{Author: "ann|x", Reason: "disk | fan", Since: time.Unix(1, 0)}); err != nil {
			t.Fatal(err)
		}
		v, self := named(t, r, "a")
		d := v.Drained
		if d == nil || d.Author != "ann/x" || d.Reason != "disk | fan" || d.Since.UnixMilli() > v.NowMS || d.Since.UnixMilli() < v.NowMS-60_000 {
			t.Fatalf("got %+v", d)
		}
		// The other nodes learn it from this beat, though the beating node did not know it yet.
		if !self.Draining || self.State != StateActive || !v.Nodes()[0].Draining {
			t.Errorf("got %+v", self)
		}
		if left := client.PTTL(ctx, r.keys.drains).Val(); left != -1 {
			t.Errorf("a drain ends in %s", left)
		}
		if v, _ := named(t, r, "b"); v.Drained != nil || slices.ContainsFunc(v.Nodes(), func(n sharding.Node) bool { return n.Draining == (n.Name == "b") }) {
			t.Errorf("another name: %+v, %+v", v.Drained, v.Nodes())
		}
		if v := beat(t, r, "nameless"); v.Drained != nil {
			t.Errorf("got %+v", v.Drained)
		}
		if got := must(r.Drains(ctx))(t); len(got) != 1 || got["a"] != *d {
			t.Errorf("got %+v, want %+v", got, *d)
		}

		// Repeated after a lost reply it changes nothing, another reason does.
		client.HSet(ctx, r.keys.drains, "a", "1|5|ann/x|disk | fan")
		if err := r.Drain(ctx, "a", Drained{Author: "ann|x", Reason: "disk | fan"}); err != nil || must(r.Drains(ctx))(t)["a"].Since.UnixMilli() != 5 {
			t.Errorf("%v, %+v", err, must(r.Drains(ctx))(t))
		}
		if err := r.Drain(ctx, "a", Drained{Author: "bob"}); err != nil || must(r.Drains(ctx))(t)["a"].Author != "bob" || must(r.Drains(ctx))(t)["a"].Since.UnixMilli() == 5 {
			t.Errorf("%v, %+v", err, must(r.Drains(ctx))(t))
		}

		for _, want := range []bool{true, false} {
			if was := must(r.Resume(ctx, "a"))(t); was != want {
				t.Errorf("resumed: %v, want %v", was, want)
			}
		}
		if v, self := named(t, r, "a"); v.Drained != nil || self.Draining {
			t.Errorf("after it was resumed: %+v, %+v", v.Drained, self)
		}
	})
}

// Records that this version cannot read are drains, and stay.
func TestForeignDrains(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		ctx, r := t.Context(), New(client, Config{})
		records := map[string]string{
			"newer": "2|{}", "much-newer": "20|1|x|y", "empty": "", "words": "drained", "short": "1|5|x", "when": "1|x|y|z", "large": "1|5|" + strings.Repeat("x", MaxRecord) + "|",
		}
		for name, record := range records {
			client.HSet(ctx, r.keys.drains, name, record)
			v, self := named(t, r, name)
			if v.Drained == nil || *v.Drained != (Drained{}) && name != "large" || !self.Draining {
				t.Errorf("%s: got %+v, %+v", name, v.Drained, self)
			}
			if got := client.HGet(ctx, r.keys.drains, name).Val(); got != record {
				t.Errorf("%s became %.40q", name, got)
			}
		}
		if got := must(r.Drains(ctx))(t); !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(records))) {
			t.Errorf("got %v", got)
		}
		for name, record := range records {
			if err := r.Drain(ctx, name, Drained{Author: "ann"}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			left := client.HGet(ctx, r.keys.drains, name).Val() == record
			if newer := strings.HasPrefix(record, "2"); left != newer {
				t.Errorf("%s: drained again, it was left alone: %v", name, left)
			}
			if !must(r.Resume(ctx, name))(t) {
				t.Errorf("%s: not resumed", name)
			}
		}
	})
}

func TestDrainRefuses(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		ctx, r := t.Context(), New(client, Config{})
		for _, name := range []string{"", "a\xff", strings.Repeat("x", maxDrainName+1)} {
			if err := r.Drain(ctx, name, Drained{}); err == nil || !strings.Contains(err.Error(), "use one that a node beats with") {
				t.Errorf("%.20q: %v", name, err)
			}
		}
		for i := range MaxDrains {
			client.HSet(ctx, r.keys.drains, fmt.Sprint("n", i), "1|1||")
		}
		if err := r.Drain(ctx, "one-more", Drained{}); !errors.Is(err, ErrTooManyDrains) || !strings.Contains(err.Error(), "1000") {
			t.Errorf("got %v", err)
		}
		if err := r.Drain(ctx, "n5", Drained{Author: "ann"}); err != nil {
			t.Errorf("one that is drained already: %v", err)
		}
		if got := must(r.Drains(ctx))(t); len(got) != MaxDrains || got["n5"].Author != "ann" {
			t.Errorf("%d drains, n5 %+v", len(got), got["n5"])
		}
	})
}

// A zero byte, which would end the script's text, drops none of the text behind it.
func TestDrainWithZeroByte(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		ctx, r := t.Context(), New(client, Config{})
		drain := func() Drained {
			t.Helper()
			if err := r.Drain(ctx, "a", Drained{Author: "an\x00n", Reason: "disk\x00fan"}); err != nil {
				t.Fatal(err)
			}
			return must(r.Drains(ctx))(t)["a"]
		}
		if d := drain(); d.Author != "ann" || d.Reason != "diskfan" || d.Since.IsZero() {
			t.Errorf("got %+v", d)
		}
		client.HSet(ctx, r.keys.drains, "a", "1|5|ann|diskfan")
		if d := drain(); d.Since.UnixMilli() != 5 {
			t.Errorf("repeated, it was noted anew: %+v", d)
		}
		if err := r.Drain(ctx, "b", Drained{Author: strings.Repeat("x", 63) + "\u00e4", Reason: strings.Repeat("y", 300)}); err != nil {
			t.Fatal(err)
		}
		if d := must(r.Drains(ctx))(t)["b"]; d.Author != strings.Repeat("x", 63) || d.Reason != strings.Repeat("y", 256) {
			t.Errorf("long ones were cut to %+v", d)
		}
	})
}
