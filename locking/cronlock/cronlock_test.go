package cronlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/cronlock"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// Crons that fire at the same instants, as they are: each tick runs once, with the instant of its schedule.
func TestCrons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := redistest.StartEmbedded(t)
		t.Cleanup(func() { // a pool dials on, each second, until it sees that its client is closed
			<-time.After(2 * time.Second)
			synctest.Wait()
		})
		var mu sync.Mutex
		var runs []cronlock.Run
		for range 3 {
			own := server.Client()
			locker := redislock.New(own, redislock.Config{})
			c := cron.New(cron.WithSeconds(), cronlock.Once("test", locker, own, cronlock.Config{}))
			_, err := c.AddJob("*/10 * * * * *", cronlock.Named("report", func(_ context.Context, run cronlock.Run) {
				mu.Lock()
				defer mu.Unlock()
				runs = append(runs, run)
				if late := time.Since(run.Tick); late < 0 || late > time.Second {
					t.Errorf("tick %s began %s late", run.Tick, late)
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			c.Start()
			defer func() {
				<-c.Stop().Done()
				locker.Close()
				_ = own.Close()
			}()
		}
		<-time.After(time.Minute + time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(runs) != 6 {
			t.Errorf("%d runs of 6 ticks: %v", len(runs), runs)
		}
		for i := 1; i < len(runs); i++ {
			if gap := runs[i].Tick.Sub(runs[i-1].Tick); gap != 10*time.Second || runs[i].Token <= runs[i-1].Token {
				t.Errorf("after %v came %v", runs[i-1], runs[i])
			}
		}
		if keys := client.Keys(t.Context(), "*:cron:test:report}").Val(); len(keys) != 1 {
			t.Errorf("marks: %q; want one", keys)
		}
	})
}

type structJob struct{}

func (*structJob) Run() {}

func topLevel() {}

func method(*structJob) func() { return new(structJob).Run }

func generic[T any]() {}

// Jobs whose names could differ from machine to machine are refused when they are added.
func TestNames(t *testing.T) {
	_, client := redistest.StartEmbedded(t)
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	c := cron.New(cronlock.Once("test", locker, client, cronlock.Config{}))
	for what, add := range map[string]struct {
		add  func() (cron.EntryID, error)
		want string // a part of the panic; "": added
	}{
		"function": {func() (cron.EntryID, error) { return c.AddFunc("@hourly", topLevel) }, ""},
		"named": {func() (cron.EntryID, error) {
			return c.AddJob("@hourly", cronlock.Named("a", func(context.Context, cronlock.Run) {}))
		}, ""},
		"literal": {func() (cron.EntryID, error) { return c.AddFunc("@hourly", func() {}) }, "function literal"},
		"method":  {func() (cron.EntryID, error) { return c.AddFunc("@hourly", method(nil)) }, "function literal or a method"},
		"generic": {func() (cron.EntryID, error) { return c.AddFunc("@hourly", generic[int]) }, "name it"},
		"struct":  {func() (cron.EntryID, error) { return c.AddJob("@hourly", new(structJob)) }, "*cronlock_test.structJob has no name"},
		"nil":     {func() (cron.EntryID, error) { return c.AddFunc("@hourly", nil) }, "is nil"},
	} {
		got := panicOf(func() {
			if _, err := add.add(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
		if add.want == "" && got != "" || !strings.Contains(got, add.want) {
			t.Errorf("%s: panics with %q; want %q", what, got, add.want)
		}
	}
}

func TestRefused(t *testing.T) {
	_, client := redistest.StartEmbedded(t)
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	once := func(group string, l *locking.Locker, r redis.UniversalClient, cfg cronlock.Config) func() {
		return func() { cronlock.Once(group, l, r, cfg) }
	}
	job := func(context.Context, cronlock.Run) {}
	for want, f := range map[string]func(){
		"group is empty":               once("", locker, client, cronlock.Config{}),
		`contains ":"`:                 once("a:b", locker, client, cronlock.Config{}),
		"group has 101 bytes":          once(strings.Repeat("x", 101), locker, client, cronlock.Config{}),
		"not printable":                once("a\nb", locker, client, cronlock.Config{}),
		"locker is nil":                once("a", nil, client, cronlock.Config{}),
		"it is nil":                    once("a", locker, nil, cronlock.Config{}),
		"Config.MaxSkew is -1s":        once("a", locker, client, cronlock.Config{MaxSkew: -time.Second}),
		"at most 24h":                  once("a", locker, client, cronlock.Config{MaxSkew: 25 * time.Hour}),
		"Config.Namespace":             once("a", locker, client, cronlock.Config{Namespace: "{a}"}),
		"name is empty":                func() { cronlock.Named("", job) },
		"name has 401 bytes":           func() { cronlock.Named(strings.Repeat("x", 401), job) },
		`function of "a" is nil`:       func() { cronlock.Named("a", nil) },
		`"a" was called without a cla`: func() { cronlock.Named("a", job).Run() },
	} {
		if got := panicOf(f); !strings.Contains(got, want) {
			t.Errorf("panics with %q; want %q", got, want)
		}
	}
}

func panicOf(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}
