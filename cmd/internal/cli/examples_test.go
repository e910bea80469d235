package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that is no group has examples, and they are valid command lines.
func TestExamples(t *testing.T) {
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	left := map[string]bool{}
	for path := range examples {
		left[path] = true
	}
	each(a.root(), func(c *cobra.Command) {
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		delete(left, path)
		if c.HasSubCommands() {
			return
		}
		if c.Example == "" {
			t.Errorf("%s has no examples: write some into examples.go", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			line, _, _ = strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), `"`, "'"), " | ")
			words := shellWords(line)
			for strings.Contains(words[0], "=") {
				words = words[1:]
			}
			a = &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
			found, args, err := a.root().Find(words[1:])
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
	for path := range left {
		t.Errorf("there is no command %s", path)
	}
}

// each calls f for a command and all below it.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		each(c, f)
	}
}
