package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/escapement/escapement/locking/redistest"
)

func main() {
	var o options
	flag.IntVar(&o.contenders, "contenders", 8, "how many want the lock at once, each with a client of its own")
	flag.DurationVar(&o.span, "for", 5*time.Second, "how long each library is measured")
	flag.DurationVar(&o.work, "work", 0, "how long a holder keeps the lock")
	flag.IntVar(&o.pairs, "pairs", 3000, "uncontended acquires and releases of each library")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "peerbench:", err)
		os.Exit(1)
	}
}

// options say what is measured.
type options struct {
	contenders int
	span, work time.Duration
	pairs      int
}

func run(o options) (err error) {
	dir, err := os.MkdirTemp("", "peerbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := redistest.StartProcess(redistest.ProcessConfig{Dir: dir})
	if err != nil {
		return err
	}
	defer func() {
		if stopped := server.Kill(); err == nil {
			err = stopped
		}
	}()
	ctx := context.Background()
	if err := uncontended(ctx, server.Addr(), o); err != nil {
		return err
	}
	return contended(ctx, server.Addr(), o)
}
