// Package cli is the program escapement; command escapement has its documentation.
package cli

import (
	"maps"
	"os"

	"github.com/escapement/escapement/cmd/internal/lockstore"
)

// Main carries out the command line of the process, and ends the process. It adds the given drivers
// to the drivers of every program.
func Main(more map[string]lockstore.Driver) {
	maps.Copy(lockstore.Drivers, more)
	os.Exit(new(app).Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
