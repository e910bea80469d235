//go:build mutants

package schedtest_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// build makes the test binary of this package, with the files of an overlay if there is one.
func (f *farm) build(name string, overlay *string) (string, error) {
	f.building.Lock()
	defer f.building.Unlock()
	bin := filepath.Join(f.dir, name+".test")
	args := []string{"go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-tags", "mutants", "-o", bin}
	if overlay != nil {
		args = append(args, "-overlay", *overlay)
	}
	if out, err := f.command(huntLimit, f.root, append(args, "./scheduler/schedtest")...); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
}

const (
	brokenLimit   = 50 * time.Second // for the one test that is to catch a mutant
	unbrokenLimit = 10 * time.Minute // for all of them of a package
)

// test runs tests of a package elsewhere. The overlay is for the programs that they build, too.
func (f *farm) test(pkg, name, overlay string, limit time.Duration) (string, error) {
	f.building.Lock()
	defer f.building.Unlock()
	args := []string{"go", "test", "-vet=off", "-count=1", "-timeout", limit.String(), "-run", "^" + name + "$", pkg}
	if overlay != "" {
		args = append([]string{"env", "GOFLAGS=-overlay=" + overlay}, args...)
	}
	return f.command(max(limit, huntLimit), f.root, args...)
}

// prey is what a hunt brought home.
type prey struct {
	found map[verify.Kind]uint64 // kind -> first seed
	out   string
}

// hunt runs TestHunt in a binary. What was found before an error counts: a mutant may hang or panic as well.
func (f *farm) hunt(bin, plan string, seeds int, until verify.Kind) (prey, error) {
	out, err := f.command(huntLimit, filepath.Join(f.root, "scheduler", "schedtest"), bin, "-test.run", "^TestHunt$",
		"-hunt.plan", plan, "-hunt.seeds", strconv.Itoa(seeds), "-hunt.kind", string(until))
	p := prey{found: make(map[verify.Kind]uint64), out: out}
	played := false
	for line := range strings.Lines(out) {
		var kind verify.Kind
		var seed uint64
		if n, _ := fmt.Sscanf(line, "hunt: found %s at seed %d:", &kind, &seed); n == 2 {
			p.found[kind] = seed
		}
		played = played || strings.HasPrefix(line, "hunt: played ")
	}
	if err == nil && !played {
		err = fmt.Errorf("it did not play to the end")
	}
	return p, err
}
