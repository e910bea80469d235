package roster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/escapement/escapement/sharding"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/escapement/escapement/locking/redistest"
)

// op is one step of a trace: its result must not depend on the server.
type op struct {
	name string
	do   func(ctx context.Context, c *redis.Client, r *Roster) (any, error)
}

// drawOp draws a step. Ages are multiples of 7 minutes against a TTL of an hour,
// so that the servers' own clocks never decide.
func drawOp(t *rapid.T) op {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id")
	d := map[string]string{"job": rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "set")}
	by := time.Duration(rapid.IntRange(-9, 12).Draw(t, "by")) * 7 * time.Minute
	switch kind := rapid.IntRange(0, 13).Draw(t, "kind"); kind {
	case 0, 1, 2, 3, 4:
		return op{fmt.Sprintf("beat %s, set %s", id, d), func(ctx context.Context, _ *redis.Client, r *Roster) (any, error) {
			v, err := r.Beat(ctx, Member{Node: sharding.Node{ID: id, Name: id, Set: SetDigest(d), Labels: d}})
			return timeless(v), err
		}}
	case 5:
		return op{"leave " + id, func(ctx context.Context, _ *redis.Client, r *Roster) (any, error) {
			return nil, r.Leave(ctx, id)
		}}
	case 6:
		return op{fmt.Sprint("announce ", d), func(ctx context.Context, _ *redis.Client, r *Roster) (any, error) {
			return nil, r.Announce(ctx, SetDigest(d), d)
		}}
	case 7:
		return op{"look", func(ctx context.Context, _ *redis.Client, r *Roster) (any, error) {
			v, err := r.Look(ctx)
			return timeless(v), err
		}}
	case 8:
		raw := rapid.SampledFrom([]string{"", "{", `{"v":2}`, `{"v":1,"id":"` + id + `"}`}).Draw(t, "raw")
		return op{fmt.Sprintf("write %s %s", id, raw), func(ctx context.Context, c *redis.Client, r *Roster) (any, error) {
			return nil, c.HSet(ctx, r.keys.roster, id, raw).Err()
		}}
	case 9:
		return op{fmt.Sprintf("write set %s", d), func(ctx context.Context, c *redis.Client, r *Roster) (any, error) {
			err := c.HSet(ctx, r.keys.sets, SetDigest(d), "{").Err()
			got, read := r.Sets(ctx, []string{SetDigest(d)})
			return fmt.Sprint(got, errors.Is(read, ErrDamaged)), err
		}}
	case 12:
		return op{fmt.Sprint("drain ", id, d), func(ctx context.Context, _ *redis.Client, r *Roster) (any, error) {
			return nil, r.Drain(ctx, id, Drained{Author: d["job"], Reason: "a|b\n"})
		}}
	case 13:
		return op{"resume " + id, func(ctx context.Context, _ *redis.Client, r *Roster) (any, error) {
			return r.Resume(ctx, id)
		}}
	default:
		return op{fmt.Sprintf("age %s and %s by %v", id, d, by), func(ctx context.Context, c *redis.Client, r *Roster) (any, error) {
			return nil, errors.Join(
				c.ZAddArgsIncr(ctx, r.keys.seen, redis.ZAddArgs{XX: true, Members: []redis.Z{{Score: -float64(by.Milliseconds()), Member: id}}}).Err(),
				c.ZAddArgsIncr(ctx, r.keys.setsSeen, redis.ZAddArgs{XX: true, Members: []redis.Z{{Score: -float64(12 * by.Milliseconds()), Member: SetDigest(d)}}}).Err())
		}}
	}
}

// timeless is a view without the parts that depend on the clock.
func timeless(v View) View {
	v.NowMS, v.Source = 0, "" // each server has its own id
	if v.Drained != nil {
		v.Drained.Since = time.Time{}
	}
	for i := range v.Members {
		v.Members[i].Seen = time.Time{}
	}
	return v
}

// The same random trace on Redis and on the embedded server: the same replies and
// the same content after every step.
func TestTraceOnBothServers(t *testing.T) {
	server := redistest.Start(t).Client(t)
	_, embedded := redistest.StartEmbedded(t)
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		cfg := Config{Namespace: fmt.Sprint("trace-", run), TTL: time.Hour}
		one, two := New(server, cfg), New(embedded, cfg)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			o := drawOp(t)
			got1, err1 := o.do(t.Context(), server, one)
			got2, err2 := o.do(t.Context(), embedded, two)
			// redis.Nil: there was nothing to age.
			if !errors.Is(err1, redis.Nil) && err1 != nil || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%s: redis-server %v, embedded %v", o.name, err1, err2)
			}
			if !reflect.DeepEqual(got1, got2) {
				t.Fatalf("%s: redis-server\n%+v, embedded\n%+v", o.name, got1, got2)
			}
			held1, err1 := content(t.Context(), server, one.keys)
			held2, err2 := content(t.Context(), embedded, two.keys)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			if held1 != held2 {
				t.Fatalf("after %s: redis-server\n%s, embedded\n%s", o.name, held1, held2)
			}
		}
	})
}
