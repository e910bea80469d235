//go:build mutants

package schedtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// mutant is a broken version of the system, and the check that must see it. It exists in the build of one test
// binary only: the go tool is shown other texts in place of the files (-overlay).
type mutant struct {
	name  string
	edits []edit
	plan  string // of hunts; "": random, or every plan where nothing is to be found
	seeds int    // at most; 0: see most
	// Just one of these.
	caught   verify.Kind // by TestHunt with the plan
	test     string      // package and name of a test elsewhere that fails: "./locking TestKeeper"
	harmless string      // why no promise is broken; then no plan finds anything
	gap      string      // why no plan finds anything though a promise is broken: what the simulation lacks
}

// edit replaces a text that stands once in a file, named from the module's root.
type edit struct{ file, old, new string }

const (
	defaultHunt = 60
	aimedHunt   = 8               // of a plan that is aimed at something
	eachHunt    = 1               // of every plan, where nothing is to be found
	huntLimit   = 2 * time.Minute // for one binary; one that runs into it has hung
)

// TestMutants: the unbroken system passes every plan and test, and each broken one is caught by the check that is
// named for it.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	f := &farm{root: root, dir: t.TempDir()}
	ok := t.Run("unbroken", f.unbroken)
	if !ok {
		t.Fatal("the unbroken system does not pass, so being caught would mean nothing")
	}
	t.Run("broken", func(t *testing.T) {
		for i, m := range mutants() {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				f.try(t, i, m)
			})
		}
	})
	t.Logf("%d mutants\n%s", len(f.rows), f.table())
}

// farm builds and runs mutants.
type farm struct {
	root, dir string
	building  sync.Mutex // one after another

	mu   sync.Mutex
	rows map[int]row
}

// row is what became of one mutant.
type row struct{ name, caught, seed, took string }

func (f *farm) unbroken(t *testing.T) {
	bin, err := f.build("unbroken", nil)
	if err != nil {
		t.Fatal(err)
	}
	seeds, tests := map[string]int{}, map[string][]string{}
	for _, m := range mutants() {
		if pkg, name, ok := strings.Cut(m.test, " "); ok {
			tests[pkg] = append(tests[pkg], name)
			continue
		}
		seeds[m.hunted()] = max(seeds[m.hunted()], m.most())
	}
	for _, plan := range slices.Sorted(maps.Keys(seeds)) {
		t.Run(plan, func(t *testing.T) {
			t.Parallel()
			p, err := f.hunt(bin, plan, seeds[plan], "")
			if err != nil || len(p.found) > 0 {
				t.Errorf("%v, %v\n%s", p.found, err, p.out)
			}
		})
	}
	for pkg, names := range tests {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			if out, err := f.test(pkg, "("+strings.Join(names, "|")+")", "", unbrokenLimit); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// try plants a mutant and sees who catches it.
func (f *farm) try(t *testing.T, i int, m mutant) {
	began := time.Now()
	overlay, err := f.overlay(i, m)
	if err != nil {
		t.Fatal(err)
	}
	r := row{name: m.name}
	if pkg, name, ok := strings.Cut(m.test, " "); ok {
		r.caught = m.test
		out, err := f.test(pkg, name, overlay, brokenLimit)
		if err == nil {
			r.caught = "NOBODY; not by " + m.test
			t.Errorf("%s passes", m.test)
		} else if !strings.Contains(out, "--- FAIL: "+name) {
			t.Errorf("%s does not fail, it breaks: %v\n%s", m.test, err, out)
		}
	} else {
		bin, err := f.build(strconv.Itoa(i), &overlay)
		if err != nil {
			t.Fatal(err)
		}
		p, err := f.hunt(bin, m.hunted(), m.most(), m.caught)
		r.caught, r.seed = f.verdict(t, m, p, err)
		_ = os.Remove(bin) // they are large
	}
	r.took = fmt.Sprintf("%.1f", time.Since(began).Seconds())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil {
		f.rows = make(map[int]row)
	}
	f.rows[i] = r
}

// verdict says who caught a mutant, and at which seed.
func (f *farm) verdict(t *testing.T, m mutant, p prey, err error) (caught, seed string) {
	at, found := p.found[m.caught]
	free := m.caught == ""
	switch {
	case free && len(p.found) == 0 && err == nil && m.gap != "":
		return "NOBODY YET: " + m.gap, "-"
	case free && len(p.found) == 0 && err == nil:
		return "nobody, harmless: " + m.harmless, "-"
	case free:
		t.Errorf("it is said not to be found (%s%s), but: %v, %v\n%s", m.harmless, m.gap, p.found, err, p.out)
	case found:
		return string(m.caught) + " in " + m.hunted(), strconv.FormatUint(at, 10)
	default:
		t.Errorf("want it caught by %s in %d seeds of %q; found %v, %v\n%s", m.caught, m.most(), m.hunted(), p.found, err, p.out)
	}
	return "NOBODY; found " + fmt.Sprint(p.found), "-"
}

func (m mutant) hunted() string {
	switch {
	case m.plan == "" && m.caught == "":
		return everyPlan
	case m.plan == "":
		return "random"
	default:
		return m.plan
	}
}

func (m mutant) most() int {
	switch {
	case m.seeds > 0:
		return m.seeds
	case m.hunted() == everyPlan:
		return eachHunt
	case m.hunted() == "random" || m.hunted() == "healthy":
		return defaultHunt
	default:
		return aimedHunt
	}
}

// overlay writes the files that a mutant changes and the list of them that the go tool reads.
func (f *farm) overlay(i int, m mutant) (string, error) {
	texts := make(map[string]string)
	for _, e := range m.edits {
		path := filepath.Join(f.root, e.file)
		if texts[path] == "" {
			raw, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			texts[path] = string(raw)
		}
		if n := strings.Count(texts[path], e.old); n != 1 {
			return "", fmt.Errorf("%s has this text %d times and not once; the code has moved on, so mend the mutant: %q", e.file, n, e.old)
		}
		texts[path] = strings.Replace(texts[path], e.old, e.new, 1)
	}
	replace := make(map[string]string)
	for path, text := range texts {
		other := filepath.Join(f.dir, fmt.Sprint(i, "-", len(replace), filepath.Ext(path)))
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[path] = other
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(f.dir, fmt.Sprint(i, ".json"))
	return path, os.WriteFile(path, list, 0o600)
}

// table is what became of all, in their order.
func (f *farm) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-72s | %-58s | %4s | %s\n", "mutant", "caught by", "seed", "seconds")
	for _, i := range slices.Sorted(maps.Keys(f.rows)) {
		r := f.rows[i]
		fmt.Fprintf(&b, "%-72s | %-58s | %4s | %s\n", r.name, r.caught, r.seed, r.took)
	}
	return b.String()
}

// command runs the go tool, or a binary that it made, on one core.
func (f *farm) command(limit time.Duration, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), "GOMAXPROCS=1", "GOFLAGS=")
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done within %s", limit)
	}
	return string(out), err
}
