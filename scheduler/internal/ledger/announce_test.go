package ledger_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
)

// watcher sees the arguments of each command before it is sent.
type watcher func(args []any)

func (w watcher) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w watcher) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w watcher) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w(cmd.Args())
		return next(ctx, cmd)
	}
}

// held are n jobs, in the definitions that version names.
func held(n int, version string) map[string]string {
	all := make(map[string]string, n)
	for i := range n {
		job := fmt.Sprintf("job-%d", i)
		all[job] = job + "-" + version
	}
	return all
}

// hold announces jobs as nodes of a generation and revision hold them.
func (r *rig) hold(t *testing.T, generation, revision string, held map[string]string) {
	t.Helper()
	for _, chunks := range define.Chunks(r.led, held) {
		if len(chunks) == 0 {
			continue
		}
		if err := define.Announce(t.Context(), r.led, generation, revision, chunks); err != nil {
			t.Fatal(err)
		}
	}
}

// store stores the definitions of jobs.
func (r *rig) store(t *testing.T, held map[string]string) {
	t.Helper()
	for job, digest := range held {
		err := define.Store(t.Context(), r.led, r.led.Partition(job), []string{digest}, func(string) ([]byte, error) { return []byte(`{"name":"` + job + `"}`), nil })
		if err != nil {
			t.Fatal(err)
		}
	}
}

// generations are Announced's results, a line each.
func (r *rig) generations(t *testing.T) (lines []string) {
	t.Helper()
	for _, a := range must(define.ListAnnounced(t.Context(), r.led)) {
		lines = append(lines, fmt.Sprintf("%s %s of %s at %s since %s", a.Job, a.Digest, a.Generation, a.Revision, millisOf(a.Since-noon)))
	}
	slices.Sort(lines)
	return lines
}

// TestChunks: every job is in the chunk where it is looked for, no chunk is large, and a job that
// comes, goes or changes makes one chunk another one.
func TestChunks(t *testing.T) {
	for _, partitions := range []int{1, 3, 64} {
		l := &ledger.Ledger{Keys: make([]ledger.Keys, partitions)}
		digests := func(held map[string]string) map[string]bool {
			all := map[string]bool{}
			for part, chunks := range define.Chunks(l, held) {
				for place, c := range chunks {
					if c.Part != part || c.Place != place || c.Of != len(chunks) || len(c.Jobs) > define.ChunkJobs*5/4 || len(chunks) > 1 && len(c.Jobs) < define.ChunkJobs*3/8 {
						t.Fatalf("%d partitions: chunk %d of %d in %d has %d jobs", partitions, c.Place, c.Of, c.Part, len(c.Jobs))
					}
					for job, digest := range c.Jobs {
						if l.Partition(job) != part || define.Place(job, len(chunks)) != place || held[job] != digest {
							t.Fatalf("%d partitions: %s is in chunk %d of %d", partitions, job, place, part)
						}
					}
					all[c.Digest] = true
				}
			}
			return all
		}
		before := held(9500, "1")
		for what, change := range map[string]func(m map[string]string){
			"comes": func(m map[string]string) { m["another"] = "d" }, "goes": func(m map[string]string) { delete(m, "job-7") },
			"changes": func(m map[string]string) { m["job-7"] = "d" },
		} {
			after := maps.Clone(before)
			change(after)
			was, is := digests(before), digests(after)
			maps.DeleteFunc(is, func(digest string, _ bool) bool { return was[digest] })
			if len(is) != 1 {
				t.Errorf("%d partitions: a job %s, and %d of %d chunks are others", partitions, what, len(is), len(was))
			}
		}
	}
}

// TestAnnounce: announced definitions read back, the newest revision of each; a stored chunk is not
// sent again.
func TestAnnounce(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		many, sent := held(3000, "1"), 0
		r.client.AddHook(watcher(func(args []any) {
			for _, a := range args[min(2, len(args)):] { // behind the script
				if s, ok := a.(*string); ok {
					sent += strings.Count(*s, "=")
				}
			}
		}))
		r.hold(t, "neo", "1", many)
		if sent != 3000 {
			t.Errorf("%d jobs were announced, want all", sent)
		}
		sent = 0
		r.hold(t, "neo", "1", many)
		r.hold(t, "neo", "2", many)
		r.hold(t, "", "2", many)
		if sent != 0 {
			t.Errorf("%d jobs were announced again", sent)
		}
		many["job-5"] = "another"
		r.hold(t, "neo", "2", many)
		if sent == 0 || sent > 1000 {
			t.Errorf("%d jobs were announced for one that has changed", sent)
		}
		if n := len(must(define.ListAnnounced(t.Context(), r.led))); n != 6001 {
			t.Errorf("%d definitions read back, want 3,000 of each generation and one more", n)
		}
	})
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.hold(t, "neo", "2", map[string]string{"a": "a-1", "b": "b-1"})
		r.pass(t, time.Second)
		r.hold(t, "neo", "1|x", map[string]string{"a": "a-1"})
		r.hold(t, "neo", "2", map[string]string{"a": "a-2"})
		want := []string{"a a-1 of neo at 2 since 0s", "a a-2 of neo at 2 since 1s", "b b-1 of neo at 2 since 0s"}
		if got := r.generations(t); !slices.Equal(got, want) {
			t.Errorf("announced are %q, want %q", got, want)
		}
		chunk := define.Chunks(r.led, map[string]string{"a": "a-2"})[0][0].Digest
		read := func() map[string]map[string]string {
			return must(define.ReadChunks(t.Context(), r.led, map[int][]string{0: {chunk, "nope"}}))
		}
		if got := read(); len(got) != 1 || got[chunk]["a"] != "a-2" {
			t.Errorf("read: %v", got)
		}
		r.client.HSet(t.Context(), r.led.Keys[0].Chunks, chunk, "1|1|a=a-3")
		if got := read(); len(got) != 0 {
			t.Errorf("a chunk that holds something else is read as %v", got)
		}
	})
}

// TestCurrentOfADamagedChunk: a job gets no cursor but its own, whatever is stored in place of the
// chunk.
func TestCurrentOfADamagedChunk(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ours := map[string]string{"a": "d-a", "b": "d-b", "c": "d-c"}
		cursors := map[string]int64{"a": noon + 1000, "b": noon + 2000, "c": 0}
		var defs []define.Definition
		for _, job := range []string{"a", "b", "c", "x"} {
			defs = append(defs, define.Definition{Job: job, Digest: "d-" + job, Text: []byte("{}"), Cursor: cursors[job]})
		}
		must(define.Define(t.Context(), r.led, r.now, defs))
		r.hold(t, "", "1", ours)
		chunk := define.Chunks(r.led, ours)[0][0]
		whole := must(r.client.HGet(t.Context(), r.led.Keys[0].Chunks, chunk.Digest).Result())
		for text, want := range map[string][]string{
			whole:                           {"a", "b", "c"},
			"1|1|a=d-a,c=d-c":               {"a", "c"},
			"1|1|x=d-x,a=d-a,b=d-b,c=d-c":   {"a", "b", "c"},
			"1|1|b=d-a,a=d-b,c=d-c":         {"c"},
			"1|1|c=d-c,b=d-b,a=d-other":     {"b", "c"},
			"1|1|x=d-x":                     nil,
			"2|1|a=d-a,b=d-b,c=d-c,x=other": nil,
		} {
			r.client.HSet(t.Context(), r.led.Keys[0].Chunks, chunk.Digest, text)
			got := must(define.Current(t.Context(), r.led, chunk, "1"))
			for job, cursor := range got {
				if cursor != cursors[job] {
					t.Errorf("%s: the cursor of %s is %d, want %d", text, job, cursor, cursors[job])
				}
			}
			if jobs := slices.Sorted(maps.Keys(got)); !slices.Equal(jobs, want) {
				t.Errorf("%s: registered %q, want %q", text, jobs, want)
			}
		}
	})
}

// TestTidy: chunks that were not announced for 30 days leave, with the definitions that no entry
// and no chunk names. Used definitions stay, and so do records of a newer version.
func TestTidy(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		k := r.led.Keys[0]
		tidy := func(days int, defs ...string) {
			t.Helper()
			if err := define.Tidy(t.Context(), r.led, 0, r.now+int64(days)*24*time.Hour.Milliseconds()); err != nil {
				t.Fatal(err)
			}
			slices.Sort(defs)
			if got := slices.Sorted(slices.Values(r.client.HKeys(t.Context(), k.Defs).Val())); !slices.Equal(got, defs) {
				t.Errorf("after %d days there are %q, want %q", days, got, defs)
			}
		}
		tidy(90)
		current := define.Definition{Job: "a", Digest: "a-1", Text: []byte(`{"name":"a"}`), Cursor: noon + 1000}
		r.defined(t, "created", -1, current)
		r.store(t, map[string]string{"a": "a-0", "b": "b-1", "c": "c-1"})
		r.hold(t, "", "1", map[string]string{"a": "a-1"})
		r.hold(t, "neo", "1", map[string]string{"b": "b-1"})
		tidy(0, "a-1", "b-1")
		r.pass(t, 20*24*time.Hour)
		r.hold(t, "neo", "2", map[string]string{"b": "b-1", "x": "x-1"})
		r.client.HSet(t.Context(), k.Defs, "later", "2{what ever")
		tidy(15, "a-1", "b-1", "later") // a-1 is current, though it is no longer announced
		if n := r.client.ZCard(t.Context(), k.Announced).Val(); n != 1 {
			t.Errorf("%d announcements are left", n)
		}
		r.client.HSet(t.Context(), k.Chunks, strings.Repeat("f", 16), "2|of a newer version")
		r.client.ZAdd(t.Context(), k.Announced, redis.Z{Member: strings.Repeat("f", 16) + "|neo|3", Score: float64(r.now + 40*24*time.Hour.Milliseconds())})
		r.store(t, map[string]string{"c": "c-1"})
		tidy(35, "a-1", "b-1", "c-1", "later") // the newer chunk's definitions are unknown
		r.client.HDel(t.Context(), k.Chunks, strings.Repeat("f", 16))
		tidy(35, "a-1", "later")
		r.hold(t, "neo", "2", map[string]string{"b": "b-1"})
		r.store(t, map[string]string{"b": "b-1"})
		tidy(0, "a-1", "b-1", "later")
		r.sound(t)
	})
}

// TestTidyAmidAnnouncements: a record that is announced, or becomes current, after it was found
// useless stays.
func TestTidyAmidAnnouncements(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, r *rig){
		"the same node again":     func(t *testing.T, r *rig) { r.hold(t, "neo", "1", map[string]string{"b": "b-1"}) },
		"a node of another build": func(t *testing.T, r *rig) { r.hold(t, "neo", "2", map[string]string{"b": "b-1"}) },
		"other jobs with it":      func(t *testing.T, r *rig) { r.hold(t, "neo", "1", map[string]string{"b": "b-1", "c": "c-1"}) },
		"a promotion": func(t *testing.T, r *rig) {
			r.defined(t, "created", 0, define.Definition{Job: "b", Digest: "b-1", Generation: "neo", Cursor: r.now + 1000})
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.hold(t, "neo", "1", map[string]string{"b": "b-1"})
				r.store(t, map[string]string{"b": "b-1"})
				r.pass(t, define.AnnouncedFor+time.Second)
				once := true
				r.client.AddHook(watcher(func(args []any) {
					if once && len(args) > 1 && args[1] == script("tidy").Hash() {
						once = false
						meanwhile(t, r)
					}
				}))
				if err := define.Tidy(t.Context(), r.led, 0, r.now); err != nil || once {
					t.Fatal(err, once)
				}
				if !r.client.HExists(t.Context(), r.led.Keys[0].Defs, "b-1").Val() {
					t.Error("a definition has left that is used")
				}
			})
		})
	}
}
