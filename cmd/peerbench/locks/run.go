package locks

import (
	"context"
	"errors"
	"flag"
	"os"
	"time"

	"github.com/escapement/escapement/locking/redistest"
)

// options are the settings of the measurement.
type options struct {
	contenders int
	span, work time.Duration
	pairs      int
}

// Run measures as the flags in args choose, and prints two tables.
func Run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("locks", flag.ExitOnError)
	flags.IntVar(&o.contenders, "contenders", 8, "how many want the lock at once, each with a client of its own")
	flags.DurationVar(&o.span, "for", 5*time.Second, "how long each library is measured")
	flags.DurationVar(&o.work, "work", 0, "how long a holder keeps the lock")
	flags.IntVar(&o.pairs, "pairs", 3000, "uncontended acquires and releases of each library")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return run(ctx, o)
}

// run measures on a redis-server of its own, which it ends.
func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "peerbench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := redistest.StartProcess(redistest.ProcessConfig{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Kill()) }()
	if err := uncontended(ctx, server.Addr(), o); err != nil {
		return err
	}
	return contended(ctx, server.Addr(), o)
}
