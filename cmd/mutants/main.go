package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// options select the guards to remove and the tests to run then.
type options struct {
	only     string
	list     bool
	tests    string
	parallel int
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "the guards whose name matches this `regexp`")
	flag.BoolVar(&o.list, "list", false, "list the guards and run nothing")
	flag.StringVar(&o.tests, "tests", "", "run these tests in place of those of the table, and say which fail: `'PACKAGE PATTERN'`")
	flag.IntVar(&o.parallel, "p", 1, "how many guards at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, o options) (code int, err error) {
	root, err := moduleRoot()
	if err != nil {
		return 2, err
	}
	all, err := load(root)
	if err != nil {
		return 2, err
	}
	chosen, err := o.choose(all)
	if err != nil {
		return 2, err
	}
	if o.list {
		printList(chosen)
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return 2, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := player{root: root, dir: dir}
	if o.parallel > 1 {
		p.builds = 1
	}
	if o.tests != "" {
		return p.try(ctx, chosen, o.tests)
	}
	return p.all(ctx, chosen, o)
}

// choose returns the guards that -only selects.
func (o options) choose(all []guard) ([]guard, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	all = slices.DeleteFunc(all, func(g guard) bool { return !only.MatchString(g.Name) })
	if len(all) == 0 {
		return nil, fmt.Errorf("no guard matches -only %q", o.only)
	}
	return all, nil
}

func printList(all []guard) {
	for _, g := range all {
		fmt.Fprintf(os.Stdout, "%s  %-26s %s: %s\n", g.Promise, g.Name, g.place(), g.Reason)
		for _, t := range g.tests {
			fmt.Fprintf(os.Stdout, "    %-26s %s\n", "", t)
		}
	}
}

// try plays other tests without each guard, and prints which of them fail.
func (p player) try(ctx context.Context, chosen []guard, tests string) (int, error) {
	words := strings.Fields(tests)
	if len(words) != 2 {
		return 2, fmt.Errorf("-tests: want a package and a pattern, got %q", tests)
	}
	for _, g := range chosen {
		overlay, err := p.overlay(g)
		if err != nil {
			return 2, err
		}
		o := p.run(ctx, test{words[0], words[1]}, overlay, allLimit)
		fmt.Fprintf(os.Stdout, "%s: %d pass, %d fail\n", g.Name, len(o.passed), len(o.failed))
		for _, name := range o.failed {
			fmt.Fprintf(os.Stdout, "  FAIL %s\n", name)
		}
		if o.err != nil {
			fmt.Fprintf(os.Stdout, "  %v\n%s\n", o.err, o.out)
		}
	}
	return 0, nil
}

// moduleRoot is the folder of the go.mod of Escapement that this program is started in.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // G304: the module's own file
		if err == nil && strings.HasPrefix(string(mod), "module github.com/escapement/escapement\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("run it inside Escapement's module")
		}
	}
}
