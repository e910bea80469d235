// Package cli is the program escapement; command escapement has its documentation.
package cli

import (
	"maps"
	"os"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/job"
	"github.com/escapement/escapement/cmd/internal/lock"
	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/cmd/internal/serve"
	"github.com/escapement/escapement/cmd/internal/tool"
)

// commands make the commands of the program.
var commands = []func(*command.App) *cobra.Command{
	serve.Dev, serve.Run, serve.Health, serve.Version,
	job.Jobs, job.Runs,
	lock.Lock, lock.Locks,
	tool.Nodes, tool.Generations, tool.Doctor, tool.Ledger, tool.Audit, tool.Cron, tool.Config, tool.Notify,
	tool.Move, tool.Backup, tool.Restore,
}

// Main carries out the command line of the process, and ends the process. It adds the given drivers
// to the drivers of every program.
func Main(more map[string]lockstore.Driver) {
	maps.Copy(lockstore.Drivers, more)
	a := &command.App{Commands: commands}
	os.Exit(a.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
