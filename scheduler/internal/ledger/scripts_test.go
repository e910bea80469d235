package ledger_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// TestTokensGrow: whatever happens to the server between two grants.
func TestTokensGrow(t *testing.T) {
	const start = (noon + 600_000) * 1000 // µs
	for name, c := range map[string]struct {
		us     int64 // the clock at the second grant
		server string
		flush  bool
		want   locking.Token // the second token; the first is start + 60 s
	}{
		"same microsecond":                 {start, "aaaaaaaaaaaa", false, start + 60_000_001},
		"a day later":                      {start + 86_400_000_000, "aaaaaaaaaaaa", false, start + 86_400_000_000},
		"an hour back":                     {start - 3_600_000_000, "aaaaaaaaaaaa", false, start + 60_000_001},
		"another server":                   {start, "bbbbbbbbbbbb", false, start + 61_000_000},
		"another server, 5 s later":        {start + 5_000_000, "bbbbbbbbbbbb", false, start + 65_000_000},
		"another server, an hour back":     {start - 3_600_000_000, "bbbbbbbbbbbb", false, start + 61_000_000},
		"everything lost, a while later":   {start + 1_000_000, "aaaaaaaaaaaa", true, start + 61_000_000},
		"everything lost with the server":  {start + 1_000_000, "bbbbbbbbbbbb", true, start + 61_000_000},
		"a server that hides its identity": {start + 1, "", false, start + 61_000_000},
		"an identity that agrees for long": {start, "aaaaaaaaaaaabbbb", false, start + 61_000_000},
		"the clock passes the guard":       {start + 60_000_002, "aaaaaaaaaaaa", false, start + 60_000_002},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.clock(t, start, "aaaaaaaaaaaa")
				first := r.want(t, claim.Granted, tickClaim("a", "r1", 1)).Token
				r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeSucceeded)
				r.clock(t, c.us, c.server)
				if c.flush {
					if err := r.client.FlushAll(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
					r.clock(t, noon*1000, c.server)
					r.create(t, "a")
					r.clock(t, c.us, c.server)
				}
				if _, err := operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "t1"}); err != nil { // due at any time
					t.Fatal(err)
				}
				second := r.want(t, claim.Granted, pendingClaim("a", "t1")).Token
				if first != start+60_000_000 || second != c.want || second <= first {
					t.Errorf("tokens %d and %d, want %d and %d", first, second, start+60_000_000, c.want)
				}
			})
		})
	}
}

// TestShippedScripts: the scripts as they ship, with the servers' own clocks and identities.
func TestShippedScripts(t *testing.T) {
	check := func(t *testing.T, client *redis.Client) {
		if err := client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		led := must(ledger.Join(t.Context(), client, ledger.Config{Partitions: 1}))
		before, runID, err := led.Time(t.Context())
		if err != nil || len(runID) != 40 {
			t.Fatalf("run_id %q, %v", runID, err)
		}
		r := &rig{client: client, led: led, now: before.UnixMilli()}
		r.create(t, "a") // its tick is long past
		a := r.want(t, claim.Granted, tickClaim("a", "r1", 1))
		after, _, err := led.Time(t.Context())
		if low, high := before.UnixMicro()+60_000_000, after.UnixMicro()+60_000_000; err != nil || a.Token < low || a.Token > high {
			t.Errorf("token %d, want it between %d and %d", a.Token, low, high)
		}
		record := client.HGet(t.Context(), led.Keys[0].Jobs, "a").Val()
		if want := fmt.Sprintf("|%d|%s|r1|", a.Token, runID); !strings.Contains(record, want) {
			t.Errorf("entry %q, want %q in it", record, want)
		}
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.sound(t)
		if _, err := claim.Send(t.Context(), led, node, after.Add(-time.Minute).UnixMilli(), []claim.Claim{tickClaim("a", "r2", 2)}); failed(err) == "" {
			t.Error("a claim a minute off was answered")
		}
	}
	t.Run("redis-server", func(t *testing.T) { check(t, server.Client(t)) })
	t.Run("embedded", func(t *testing.T) {
		_, client := redistest.StartEmbedded(t)
		check(t, client)
	})
}

// TestNoMemoryLeft: a Redis that takes no more writes refuses additions, and then the call has done
// nothing at all; when it has memory again the same call does it all.
func TestNoMemoryLeft(t *testing.T) {
	useScripts(t, steered...)
	r := realRig(t, oneConfig)
	ctx := t.Context()
	r.chainOf(t, "a", "follower")
	for _, job := range []string{"free", "back", "crash"} {
		r.create(t, job)
	}
	r.pass(t, time.Minute)
	for _, job := range []string{"a", "back", "crash"} {
		r.want(t, claim.Granted, attempts(2, tickClaim(job, job+"-1", 1)))
	}
	must(operate.Trigger(ctx, r.led, "free", operate.TriggerRequest{Run: "t"}))
	must(operate.Trigger(ctx, r.led, "free", operate.TriggerRequest{Run: "u"}))
	r.pass(t, ttl+time.Millisecond)
	for name, call := range map[string]func() error{
		"settle": func() error {
			return without(settle.Settle(ctx, r.led, []settle.Report{{Job: "a", Run: "a-1", Outcome: jobs.OutcomeFailed, Output: []byte("x")}}))
		},
		"unclaim": func() error {
			return without(settle.Unclaim(ctx, r.led, []settle.Return{{Job: "back", Run: "back-1"}}))
		},
		"reap": func() error {
			return without(settle.Reap(ctx, r.led, r.now, r.epoch(), []ledger.Run{{Job: "crash", ID: "crash-1"}}))
		},
		"cancel": func() error { return without(operate.Cancel(ctx, r.led, "free", "u", "ann", "")) },
		"claim": func() error {
			return without(claim.Send(ctx, r.led, node, r.now, []claim.Claim{pendingClaim("free", "t"), passing("back", "r", 5, late(2, 4))}))
		},
	} {
		r.unchanged(t, name+", refused,", func() {
			r.client.ConfigSet(ctx, "maxmemory", "1")
			if err := call(); err == nil {
				t.Errorf("%s is answered without memory", name)
			}
			r.client.ConfigSet(ctx, "maxmemory", "0")
		})
		if err := call(); err != nil {
			t.Errorf("%s, with memory: %v", name, err)
		}
	}
	r.sound(t)
}

// TestArgumentsHaveNames: a script reads exactly the fields of its struct.
func TestArgumentsHaveNames(t *testing.T) {
	for _, s := range ledger.Scripts() {
		if takes := strings.Contains(ledger.Source(s.Piece), "-- needs: lib/args"); takes != (s.Args != nil) {
			t.Errorf("%s.lua needs lib/args: %v; it has a struct: %v", s.Piece, takes, s.Args != nil)
		} else if !takes {
			continue
		}
		fields, read := tags(reflect.TypeOf(s.Args)), named(`args`, ledger.Source(s.Piece))
		slices.Sort(fields)
		if !slices.Equal(read, fields) {
			t.Errorf("%s.lua reads %q, and %T has %q", s.Piece, read, s.Args, fields)
		}
	}
}

// tags are the names of a struct's fields in JSON.
func tags(args reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(args) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" {
			names = append(names, tag)
		}
	}
	return names
}

// named are the fields of a table that a script reads, each once, sorted.
func named(table, text string) (names []string) {
	for _, m := range regexp.MustCompile(`\b`+table+`\.(\w+)`).FindAllStringSubmatch(code(text), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestKeysHaveNames: a script names exactly the keys that it uses; all are keys of the ledger.
func TestKeysHaveNames(t *testing.T) {
	k := ledger.PartitionKeys("ns", 0)
	known := append(k.All(), k.Tag+"history", k.Tag+"histories", k.Tag+"control", k.Tag+"drains", k.Tag+"audit", k.Tag+"notified",
		k.Tag+"catalog", k.Tag+"catalogat", k.Tag+"catalogdropped")
	for _, s := range ledger.Scripts() {
		_, line, has := strings.Cut(ledger.Source(s.Piece), "-- keys: ")
		if !has {
			continue
		}
		line, _, _ = strings.Cut(line, "\n")
		names := strings.Fields(line)
		slices.Sort(names)
		if used := named(`k`, strings.ReplaceAll(s.Source(), "local k = {", "")); !slices.Equal(used, names) {
			t.Errorf("%s.lua uses the keys %q, and gives names to %q", s.Name(), used, names)
		}
		for _, name := range names {
			if !slices.Contains(known, k.Tag+name) {
				t.Errorf("%s.lua: no key is called %s", s.Name(), name)
			}
		}
	}
}

// known are the globals that Redis gives to a script, and that ours use.
var known = []string{"ARGV", "KEYS", "cjson", "error", "ipairs", "math", "pairs", "pcall", "redis", "string", "table", "tonumber", "type", "unpack"}

// TestScriptsAreWhole: each script has what it uses, and none writes a global.
func TestScriptsAreWhole(t *testing.T) {
	for _, s := range ledger.Scripts() {
		chunk, err := parse.Parse(strings.NewReader(s.Source()), s.Name())
		if err != nil {
			t.Fatal(err)
		}
		code, err := lua.Compile(chunk, s.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range globals(code) {
			if !slices.Contains(known, name) {
				t.Errorf("%s.lua uses %s, which none of the pieces before it defines", s.Name(), name)
			}
		}
	}
}

// globals are the names that a function and those in it use and that are no locals.
func globals(code *lua.FunctionProto) (names []string) {
	for _, op := range code.Code {
		if kind := int(op >> 26); kind == lua.OP_GETGLOBAL || kind == lua.OP_SETGLOBAL {
			names = append(names, lua.LVAsString(code.Constants[op&0x3ffff]))
		}
	}
	for _, inner := range code.FunctionPrototypes {
		names = append(names, globals(inner)...)
	}
	return names
}

var (
	defined = regexp.MustCompile(`(?m)^local (?:function )?(\w+)`)
	spelled = regexp.MustCompile(`\w+`)
)

// TestPiecesAreNeeded: each piece is used by its users, and by some script.
func TestPiecesAreNeeded(t *testing.T) {
	used := make(map[string]bool)
	for _, s := range ledger.Scripts() {
		shipped := *s
		s.Use(func(piece string) string {
			used[piece] = true
			return ledger.Source(piece)
		})
		*s = shipped
	}
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, _ fs.DirEntry, err error) error {
		name, lua := strings.CutSuffix(file, ".lua")
		if err != nil || !lua {
			return err
		}
		if !used[name] {
			t.Errorf("%s is part of no script", file)
		}
		room := path.Dir(name) // its own parts are what a script is made of
		words := spelled.FindAllString(code(ledger.Source(name)), -1)
		for line := range strings.Lines(ledger.Source(name)) {
			list, _ := strings.CutPrefix(line, "-- needs: ")
			if list == line {
				continue
			}
			for need := range strings.FieldsSeq(list) {
				if path.Dir(need) != room && !slices.ContainsFunc(defined.FindAllStringSubmatch(ledger.Source(need), -1), func(m []string) bool { return slices.Contains(words, m[1]) }) {
					t.Errorf("%s needs %s, and uses nothing of it", file, need)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// code is a piece without its comments.
func code(text string) string { return regexp.MustCompile(`--.*`).ReplaceAllString(text, "") }

// onePath takes the fast paths out of the scripts.
var onePath = []edit{
	{"claim/plain", "elseif s and not shut and #ARGV[a] > 1 then", "elseif false then"},
	{"settle/plain", "elseif s and r and ARGV[a] == '' then", "elseif false then"},
}

// paths gives the first server of a trace the scripts as they ship, and the second server scripts
// without a fast path.
type paths struct {
	scripts [2]map[*ledger.Script]ledger.Script
	fast    int // replies to claims in which the fast path had a part
}

func newPaths(t *testing.T) *paths {
	t.Helper()
	var l paths
	for i, edits := range [][]edit{steered, append(onePath, steered...)} {
		useScripts(t, edits...)
		l.scripts[i] = map[*ledger.Script]ledger.Script{script("claim"): *script("claim"), script("settle"): *script("settle")}
	}
	return &l
}

func (l *paths) use(server int) {
	if l != nil {
		for at, s := range l.scripts[min(server, 1)] {
			*at = s
		}
	}
}

var fastReply = regexp.MustCompile(`^\["[0-9,]*[0-9]`)

func (l *paths) count(call string, replies []string) {
	if l != nil && len(replies) > 0 && fastReply.MatchString(replies[0]) {
		l.fast++
	}
}

// TestPathsAgree: the fast paths of claims and ends do the same as the slow paths, to the letter.
func TestPathsAgree(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		all := seed%2 == 0 // then nearly every call is another one
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			both := newPaths(t)
			tr := &trace{rigs: []*rig{realRig(t, traceConfig), embeddedRig(t, traceConfig)}, world: newWorld(seed, all), counts: map[string]int{}, paths: both}
			tr.run(t, *traceOps)
			t.Logf("the fast path had a part in %d claims", both.fast)
			if !all && both.fast < *traceOps/100 {
				t.Errorf("the fast path had a part in %d of %d calls only", both.fast, *traceOps)
			}
		})
	}
}
