package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/escapement/escapement/cmd/peerbench/locks"
	"github.com/escapement/escapement/cmd/peerbench/page"
	"github.com/escapement/escapement/cmd/peerbench/scale"
	"github.com/escapement/escapement/cmd/peerbench/ticks"
)

// commands are the valid first arguments.
var commands = map[string]func(ctx context.Context, args []string) error{
	"ticks":         ticks.Run,
	"locks":         locks.Run,
	"table":         page.Run,
	"scale":         scale.Run,
	ticks.ChildWord: ticks.RunChild, // one of the processes that ticks measures
}

func main() {
	var run func(ctx context.Context, args []string) error
	if len(os.Args) > 1 {
		run = commands[os.Args[1]]
	}
	if run == nil {
		fmt.Fprintln(os.Stderr, "usage: peerbench ticks|locks|scale|table [flags]; each prints its flags with -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "peerbench:", err)
		stop()
		os.Exit(1)
	}
}
