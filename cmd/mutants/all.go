package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// row is the result of one guard.
type row struct {
	caught string        // the test that has failed, or why none did
	err    error         // why the guard counts as not caught
	out    string        // of the tests, when there is an error
	took   time.Duration // with the build
}

// all checks that the named tests pass, then that one of them fails without each guard.
func (p player) all(ctx context.Context, chosen []guard, o options) (int, error) {
	began := time.Now()
	overlays := make([]string, len(chosen))
	for i, g := range chosen { // all before the first run: the tree may change meanwhile
		var err error
		if overlays[i], err = p.overlay(g); err != nil {
			return 2, err
		}
	}
	if err := p.unbroken(ctx, chosen, o.parallel); err != nil {
		return 1, fmt.Errorf("the named tests must pass on the unchanged module first:\n%w", err)
	}
	fmt.Fprintf(os.Stdout, "the named tests pass on the unchanged module: %.0f s\n\n", time.Since(began).Seconds())
	fmt.Fprintf(os.Stdout, "%-26s | %-2s | %-44s | %-60s | %s\n", "guard", "P", "place", "caught by", "seconds")
	rows := make([]row, len(chosen))
	each(len(chosen), o.parallel, func(i int) {
		rows[i] = p.without(ctx, chosen[i], overlays[i])
	}, func(i int) {
		g, r := chosen[i], rows[i]
		fmt.Fprintf(os.Stdout, "%-26s | %s | %-44s | %-60s | %.1f\n", g.Name, g.Promise, g.place(), r.caught, r.took.Seconds())
	})
	var wrong []string
	for i, r := range rows {
		if r.err != nil {
			wrong = append(wrong, chosen[i].Name)
			fmt.Fprintf(os.Stderr, "\n%s, %s: %v\n%s", chosen[i].Name, chosen[i].place(), r.err, r.out)
		}
	}
	fmt.Fprintf(os.Stdout, "\n%d guards, %d caught, %.0f s\n", len(rows), len(rows)-len(wrong), time.Since(began).Seconds())
	if len(wrong) > 0 {
		return 1, fmt.Errorf("not caught: %s", strings.Join(wrong, ", "))
	}
	return 0, nil
}

// unbroken runs every named test once on the unchanged module, the tests of a package together.
func (p player) unbroken(ctx context.Context, chosen []guard, parallel int) error {
	patterns := make(map[string][]string)
	for _, g := range chosen {
		for _, t := range g.tests {
			if !slices.Contains(patterns[t.pkg], t.run) {
				patterns[t.pkg] = append(patterns[t.pkg], t.run)
			}
		}
	}
	pkgs := slices.Sorted(maps.Keys(patterns))
	wrong := make([]error, len(pkgs))
	each(len(pkgs), parallel, func(i int) {
		t := test{pkgs[i], strings.Join(patterns[pkgs[i]], "|")}
		o := p.run(ctx, t, "", allLimit)
		switch {
		case o.err != nil:
			wrong[i] = fmt.Errorf("%s: %w\n%s", t, o.err, o.out)
		case len(o.failed) > 0:
			wrong[i] = fmt.Errorf("%s: %s fails\n%s", t.pkg, o.caughtBy(), o.out)
		}
		for _, pattern := range patterns[pkgs[i]] {
			if wrong[i] == nil && !slices.ContainsFunc(o.passed, func(name string) bool { return names(pattern, name) }) {
				wrong[i] = fmt.Errorf("%s: the pattern %s names no test that was run", t.pkg, pattern)
			}
		}
	}, func(int) {})
	return errors.Join(wrong...)
}

// names reports whether a -run pattern chooses a test or subtest of this name.
func names(pattern, name string) bool {
	parts := strings.Split(name, "/")
	for i, one := range strings.Split(pattern, "/") {
		if i >= len(parts) || !regexp.MustCompile(one).MatchString(parts[i]) {
			return false
		}
	}
	return true
}

// without runs a guard's tests on the module without it, until one fails.
func (p player) without(ctx context.Context, g guard, overlay string) (r row) {
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	for _, t := range g.tests {
		o := p.run(ctx, t, overlay, testLimit, "-failfast")
		switch {
		case o.err != nil:
			return row{caught: "BROKEN: " + t.String(), err: o.err, out: o.out}
		case len(o.failed) > 0:
			return row{caught: strings.TrimPrefix(t.pkg, "./") + " " + o.caughtBy()}
		}
		r.out += o.out
	}
	r.caught, r.err = "NOBODY", errors.New("no named test fails without it")
	return r
}

// each calls do for 0 to n-1, atOnce at a time, and then, in order, as soon as each is done.
func each(n, atOnce int, do, then func(i int)) {
	done := make([]chan struct{}, n)
	for i := range done {
		done[i] = make(chan struct{})
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range max(1, atOnce) {
		wg.Go(func() {
			for i := range next {
				do(i)
				close(done[i])
			}
		})
	}
	wg.Go(func() {
		for i := range n {
			next <- i
		}
		close(next)
	})
	for i := range n {
		<-done[i]
		then(i)
	}
	wg.Wait()
}
