package serve

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
)

// build is the version of this program; it is also the answer of /version.
type build struct {
	Version  string `json:"version"`  // the module's, "(devel)" when built from a checkout
	Revision string `json:"revision"` // the commit
	Time     string `json:"time"`     // of the commit, RFC 3339
	Modified bool   `json:"modified"` // the checkout had changes that are in no commit
	Go       string `json:"go"`
}

func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(info.Main.Version, b.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Version makes the command version.
func Version(a *command.App) *cobra.Command {
	c := a.Command("version", "say which build this is", command.Wants(), func(*cobra.Command, []string) error {
		b := thisBuild()
		if a.JSON() {
			return print.JSON(a.Stdout, b)
		}
		changes := ""
		if b.Modified {
			changes = " with changes"
		}
		_, err := fmt.Fprintf(a.Stdout, "escapement %s\ncommit     %s%s\ntime       %s\n%s\n",
			b.Version, cmp.Or(b.Revision, "unknown"), changes, cmp.Or(b.Time, "unknown"), b.Go)
		return err
	})
	c.Example = `escapement version -o json`
	return c
}
