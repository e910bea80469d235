package redlock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// bench runs the scripts at one master, with one of their lines changed.
type bench struct {
	tb           testing.TB
	server       *redistest.Embedded
	client       *redis.Client
	file, is, as string // the change; file "" for none
}

// run calls the script of a file and returns its reply as text.
func (b *bench) run(file string, keys []string, args ...any) string {
	b.tb.Helper()
	texts := map[string]string{
		"head": headLua, "acquire": acquireLua, "confirm": confirmLua, "renew": renewLua, "topup": topupLua,
		"release": releaseLua, "revoke": revokeLua, "owner": ownerLua, "node": nodeLua, "repair": repairLua,
	}
	if b.file != "" {
		if !strings.Contains(texts[b.file], b.is) {
			b.tb.Fatalf("%s.lua has no %q", b.file, b.is)
		}
		texts[b.file] = strings.Replace(texts[b.file], b.is, b.as, 1)
	}
	head := texts["head"]
	if len(keys) == 1 {
		head = ""
	}
	got, err := redisconn.NewScript(file, redisconn.TokenLua+head+texts[file]).Run(b.tb.Context(), b.client, keys, args...).Result()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(got)
}

func (b *bench) keys() []string { return lockKeys("m", "a") }

func (b *bench) repair(floor int) string {
	return b.run("repair", b.keys()[2:], b.server.RunID(), floor, -1, 60000)
}

// acquire returns the code and the token, or what stands in its place.
func (b *bench) acquire(owner string, attempt, clock, longest int) string {
	reply := b.run("acquire", b.keys(), owner, 60000, attempt, clock, 0, 0, "", stateKeep, longest)
	return strings.Join(strings.Fields(strings.Trim(reply, "[]"))[:2], " ")
}

func (b *bench) confirm(owner string, token int) string {
	return b.run("confirm", b.keys(), owner, token, stateKeep, 5)
}

func (b *bench) topup(owner string, token int) string { return b.topupAs(owner, token, 9) }

// topupAs is the top-up of a renewal with that number.
func (b *bench) topupAs(owner string, token, number int) string {
	return b.run("topup", b.keys(), owner, token, 60000, stateKeep, number)
}

func (b *bench) renew(owner string, token int) string {
	return b.run("renew", b.keys(), owner, token, 60000, stateKeep)
}

func (b *bench) withdraw(owner string, upto int) string {
	return b.run("release", b.keys(), owner, upto, 0, stateKeep)
}

func (b *bench) release(owner string) string {
	return b.run("release", b.keys(), owner, everyAttempt, 1, stateKeep)
}

func (b *bench) revoke(token int) string { return b.run("revoke", b.keys(), token) }

func (b *bench) lapse() { b.server.Mini().Del(b.keys()[0]) }

func (b *bench) lock() string {
	v, _ := b.server.Mini().Get(b.keys()[0])
	return v
}

func (b *bench) node(field string) string { return b.server.Mini().HGet(b.keys()[2], field) }

// guard is one check of the scripts: what do shows with it, and without it something else.
type guard struct {
	name         string
	file, is, as string
	want         string
	do           func(b *bench) string
}

// TestGuards takes out each check of the scripts, one at a time, and shows what it
// is there for. With the check it is as wanted.
func TestGuards(t *testing.T) {
	for _, group := range [][]guard{topupGuards(), tokenGuards(), holdGuards(), nodeGuards()} {
		for _, g := range group {
			t.Run(g.name, func(t *testing.T) {
				if got := g.play(t, "", "", ""); got != g.want {
					t.Fatalf("got %q; want %q", got, g.want)
				}
				if got := g.play(t, g.file, g.is, g.as); got == g.want {
					t.Errorf("without %q of %s.lua it is the same %q: nothing needs it here", g.is, g.file, got)
				}
			})
		}
	}
}

func (g guard) play(t *testing.T, file, is, as string) string {
	t.Helper()
	e, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	client := e.Client()
	defer client.Close()
	b := &bench{tb: t, server: e, client: client}
	b.repair(0)
	b.file, b.is, b.as = file, is, as
	return g.do(b)
}
