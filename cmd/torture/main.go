//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	logging.Disable() // go-redis logs each failed dial; the errors have it too
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// rehearsal has the settings that the scenarios of one invocation share.
type rehearsal struct {
	seconds time.Duration
	short   bool
	confirm bool
}

const (
	nodes   = 3  // how many node processes there are
	ticking = 20 // how many jobs tick every second, where it is not churnJobs
)

// options are the command line.
type options struct {
	rehearsal
	scenario   string
	keep, race bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("torture", flag.ContinueOnError)
	f.SetOutput(stderr)
	seconds := f.Int("seconds", 0, "how long each scenario goes on (default 60, with -short 12)")
	f.StringVar(&o.scenario, "scenario", "all", "all, or some of "+strings.Join(names(), ", ")+", separated by commas")
	f.BoolVar(&o.keep, "keep", false, "keep the work directory also when all is well")
	f.BoolVar(&o.short, "short", false, "shorter faults and leases, for continuous integration")
	f.BoolVar(&o.confirm, "confirm", false, "in failover and zombie, have replicas confirm what is granted")
	f.BoolVar(&o.race, "race", false, "build the node with the race detector")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *seconds == 0 {
		*seconds = 60
		if o.short {
			*seconds = 12
		}
	}
	o.seconds = time.Duration(*seconds) * time.Second
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case *seconds < 5 || *seconds > 1000: // history.keep rows must hold them all
		return o, fmt.Errorf("-seconds %d is outside 5 to 1000", *seconds)
	}
	return o, nil
}

// choose finds the scenarios. It refuses -confirm when no chosen scenario uses it: the run would
// pass, and show nothing about confirmation.
func (o options) choose() ([]scenario, error) {
	chosen, err := choose(o.scenario, o.short)
	if err == nil && o.confirm && !slices.ContainsFunc(chosen, func(s scenario) bool { return s.name == "failover" || s.name == "zombie" }) {
		err = errors.New("-confirm is for failover and zombie, and neither is chosen; with -short name them in -scenario")
	}
	return chosen, err
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var chosen []scenario
	if err == nil {
		chosen, err = o.choose()
	}
	if err != nil {
		fmt.Fprintln(stderr, "torture:", err)
		return 2
	}
	dir, err := os.MkdirTemp("", "torture-")
	if err != nil {
		fmt.Fprintln(stderr, "torture:", err)
		return 1
	}
	t := table{}
	err = perform(ctx, o, chosen, dir, &t, logger(stderr))
	var answer bytes.Buffer
	t.print(io.MultiWriter(stdout, &answer))
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "answer"), answer.Bytes(), 0o600))
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "torture:", err)
	case !t.good():
		fmt.Fprintln(stderr, "torture: not everything held, see above")
	}
	good := err == nil && t.good()
	if good && !o.keep {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(stderr, "torture: work directory:", err)
		}
	} else {
		fmt.Fprintln(stderr, "torture: the work directory is", dir)
	}
	if good {
		return 0
	}
	return 1
}

// perform builds the node program and runs the scenarios one after another.
func perform(ctx context.Context, o options, chosen []scenario, dir string, t *table, say func(string, ...any)) error {
	say("building the node program")
	binary, err := build(ctx, dir, o.race)
	if err != nil {
		return err
	}
	for _, sc := range chosen {
		t.rows = append(t.rows, sc.perform(ctx, &o.rehearsal, filepath.Join(dir, sc.name), binary, say))
		if ctx.Err() != nil {
			return errors.New("interrupted; every process was ended")
		}
	}
	return nil
}

// build builds the program and returns its path.
func build(ctx context.Context, dir string, race bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	binary := filepath.Join(dir, "escapement")
	args := []string{"build", "-buildvcs=false", "-o", binary}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/escapement/escapement/cmd/escapement")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return binary, nil
}
