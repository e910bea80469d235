package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
)

func (a *app) configCommand() *cobra.Command {
	validate := a.command("validate [FILE]", "tell everything that is wrong with a configuration", cobra.MaximumNArgs(1),
		func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.flags.config = args[0]
			}
			return a.configValidate(cmd)
		})
	validate.Long = `Reads FILE, by default that of --config, as a node would, with the files of jobs.d beside it and
the ESCAPEMENT_ variables over it, and prints every fault with its line. Nothing is connected.`
	show := a.command("print", "print the configuration that a node would run with, secrets masked", wants(),
		func(cmd *cobra.Command, _ []string) error { return a.configPrint(cmd) })
	return a.group("config COMMAND", "check and print configurations", validate, show, a.configSchemaCommand(), a.configInitCommand())
}

// verdict is the JSON of config validate.
type verdict struct {
	Valid  bool        `json:"valid"`
	Jobs   int         `json:"jobs"`
	Faults []faultJSON `json:"faults"`
}

type faultJSON struct {
	File    string `json:"file"`   // empty: the value came from a variable or a flag
	Line    int    `json:"line"`   // 0: none
	Source  string `json:"source"` // the variable or flag
	Path    string `json:"path"`
	Message string `json:"message"`
}

func (a *app) configValidate(cmd *cobra.Command) error {
	l, err := a.load(cmd, true)
	var wrong config.Error
	if err != nil && !errors.As(err, &wrong) {
		return err
	}
	if !a.json() {
		if err == nil {
			_, err = fmt.Fprintf(a.stdout, "%s: valid, %s\n", a.flags.config, print.Many(int64(len(l.Jobs)), "job"))
		}
		return err
	}
	v := verdict{Valid: err == nil, Faults: []faultJSON{}}
	for _, f := range wrong {
		v.Faults = append(v.Faults, faultJSON{f.File, f.Line, f.Name, f.Path, f.Msg})
	}
	if l != nil {
		v.Jobs = len(l.Jobs)
	}
	return errors.Join(print.JSON(a.stdout, v), err)
}

func (a *app) configPrint(cmd *cobra.Command) error {
	l, err := a.load(cmd, false)
	if err != nil {
		return err
	}
	if !a.json() {
		return config.Print(a.stdout, &l.Config)
	}
	var tree map[string]any
	if err := config.YAMLNode(&l.Config).Decode(&tree); err != nil {
		return err
	}
	return print.JSON(a.stdout, tree)
}
