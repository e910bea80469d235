package ticks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/escapement/escapement/cmd/peerbench/figures"
	"github.com/escapement/escapement/cmd/peerbench/peers"
)

// ChildWord is the first argument of a measured process.
const ChildWord = "child"

// The commands to a measured process, a line each; it answers wordReady when it works, and the last
// with a report.
const (
	wordReady  = "ready"
	wordBegin  = "begin"  // the measured time
	wordEnd    = "end"    // of it
	wordReport = "report" // and end
)

// report has a process's starts from begin to report, its CPU time from begin to end, and its
// memory at the end.
type report struct {
	Starts []figures.Start
	CPU    float64 // seconds
	RSS    int64   // bytes
	Allocs int64   // from begin to end
}

// RunChild is the main function of a measured process.
func RunChild(ctx context.Context, args []string) error {
	var who string
	var cfg peers.Config
	flags := flag.NewFlagSet(ChildWord, flag.ExitOnError)
	flags.StringVar(&who, "who", "", "the contender")
	flags.StringVar(&cfg.Addr, "addr", "", "the redis-server")
	flags.IntVar(&cfg.Index, "index", 0, "which of the processes")
	flags.IntVar(&cfg.Nodes, "nodes", 1, "of how many")
	flags.IntVar(&cfg.Jobs, "jobs", 1, "how many jobs are due at each second")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p, ok := peers.Find(who)
	if !ok {
		return fmt.Errorf("there is no %q", who)
	}
	var c child
	cfg.Note = c.note
	// A signal reaches the whole process group; the parent decides when this one ends.
	stop, err := p.Start(context.WithoutCancel(ctx), cfg)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, wordReady)
	err = c.listen(os.Stdin, os.Stdout)
	if stop != nil {
		err = errors.Join(err, stop())
	}
	return err
}

// child collects the starts.
type child struct {
	mu     sync.Mutex
	seen   bool // starts are collected
	report report
}

// note notes a call of a job's function.
func (c *child) note(job int, tick time.Time) {
	lag := time.Since(tick)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen {
		c.report.Starts = append(c.report.Starts, figures.Start{Job: job, Tick: tick.Unix(), Lag: lag})
	}
}

// listen carries out the commands of in until it has reported on out.
func (c *child) listen(in io.Reader, out io.Writer) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		c.mu.Lock()
		switch lines.Text() {
		case wordBegin:
			c.report.Allocs = -allocs()
			c.seen, c.report.CPU = true, -cpu()
		case wordEnd:
			c.report.CPU += cpu()
			c.report.RSS = rss()
			c.report.Allocs += allocs()
		case wordReport:
			c.seen = false
			defer c.mu.Unlock()
			return json.NewEncoder(out).Encode(c.report)
		}
		c.mu.Unlock()
	}
	return errors.New("nobody wants a report")
}
