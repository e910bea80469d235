package ticks

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/cmd/peerbench/peers"
)

// options are the settings of the measurement.
type options struct {
	who    []peers.Peer
	jobs   []int
	nodes  int
	span   time.Duration
	rounds int
	// patience is how long in all to wait for a quiet machine, and to repeat disturbed
	// measurements.
	patience time.Duration
	json     string // the file that gets the figures, or ""
	docs     string // the folder whose benchmarks.md is made anew, or ""
}

func parse(args []string) (o options, err error) {
	o.who, o.jobs = peers.All(), []int{1, 100, 1000, 10_000}
	flags := flag.NewFlagSet("ticks", flag.ExitOnError)
	flags.Func("who", "the contenders, separated by commas (default all: "+names(o.who)+")", func(s string) (err error) {
		o.who, err = contenders(s)
		return err
	})
	flags.Func("jobs", "how many jobs are due at each second, separated by commas (default 1,100,1000,10000)", func(s string) (err error) {
		o.jobs, err = numbers(s)
		return err
	})
	flags.IntVar(&o.nodes, "nodes", 3, "how many node processes run them")
	flags.DurationVar(&o.span, "for", 5*time.Second, "how long each measurement is, whole seconds")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each is measured")
	flags.DurationVar(&o.patience, "patience", 0, "how long in all to wait until other processes leave the machine alone, and to repeat what they disturbed")
	flags.StringVar(&o.json, "json", "", "write the figures into this file")
	flags.StringVar(&o.docs, "docs", "", "make benchmarks.md of this folder anew")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.nodes < 1 || o.rounds < 1 || o.span < time.Second || o.span%time.Second != 0 {
		return o, errors.New("-nodes and -rounds must be at least 1, -for some whole seconds")
	}
	return o, nil
}

func names(all []peers.Peer) string {
	words := make([]string, len(all))
	for i, p := range all {
		words[i] = p.Name
	}
	return strings.Join(words, ",")
}

func contenders(s string) (all []peers.Peer, err error) {
	for name := range strings.SplitSeq(s, ",") {
		p, ok := peers.Find(name)
		if !ok {
			return nil, fmt.Errorf("there is no %q: one or more of %s", name, names(peers.All()))
		}
		all = append(all, p)
	}
	return all, nil
}

func numbers(s string) (all []int, err error) {
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 100_000 {
			return nil, fmt.Errorf("%q is no number from 1 to 100000", word)
		}
		all = append(all, n)
	}
	return all, nil
}
