package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
)

// Every command that is no group has examples, and they are valid command lines.
func TestExamples(t *testing.T) {
	each(cmdtest.NewApp().Root(), func(c *cobra.Command) {
		if c.HasSubCommands() {
			return
		}
		if c.Example == "" {
			t.Errorf("%s has no examples", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			line, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), `"`, "'"), " | ")
			words := shellWords(line)
			for strings.Contains(words[0], "=") {
				words = words[1:]
			}
			found, args, err := cmdtest.NewApp().Root().Find(words[1:])
			if err != nil || words[0] != "escapement" || found.CommandPath() != c.CommandPath() {
				t.Errorf("%s: %s is for %s, %v", c.CommandPath(), line, found.CommandPath(), err)
				continue
			}
			if err := found.ParseFlags(args); err != nil {
				t.Errorf("%s: %v", line, err)
			} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}

// each calls f for a command and all below it.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		each(c, f)
	}
}
