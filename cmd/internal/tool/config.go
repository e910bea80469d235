package tool

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
)

// Config makes the commands config.
func Config(a *command.App) *cobra.Command {
	validate := a.Command("validate [FILE]", "tell everything that is wrong with a configuration", cobra.MaximumNArgs(1),
		func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.Flags.Config = args[0]
			}
			return configValidate(a, cmd)
		})
	validate.Long = `Reads FILE, by default that of --config, as a node would, with the files of jobs.d beside it and
the ESCAPEMENT_ variables over it, and prints every fault with its line. Nothing is connected.`
	validate.Example = `escapement config validate config.yaml`
	show := a.Command("print", "print the configuration that a node would run with, secrets masked", command.Wants(), func(cmd *cobra.Command, _ []string) error { return configPrint(a, cmd) })
	show.Example = `escapement config print
ESCAPEMENT_NODE_WEIGHT=2 escapement config print --config config.yaml -o json`
	return a.Group("config COMMAND", "check and print configurations", validate, show, configSchemaCommand(a), configInitCommand(a))
}

// validation is the JSON of config validate.
type validation struct {
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

func configValidate(a *command.App, cmd *cobra.Command) error {
	l, err := a.Load(cmd, true, false)
	var wrong config.Error
	if err != nil && !errors.As(err, &wrong) {
		return err
	}
	if !a.JSON() {
		if err == nil {
			_, err = fmt.Fprintf(a.Stdout, "%s: valid, %s\n", a.Flags.Config, print.Many(int64(len(l.Jobs)), "job"))
		}
		return err
	}
	v := validation{Valid: err == nil, Faults: []faultJSON{}}
	for _, f := range wrong {
		v.Faults = append(v.Faults, faultJSON{f.File, f.Line, f.Name, f.Path, f.Msg})
	}
	if l != nil {
		v.Jobs = len(l.Jobs)
	}
	return errors.Join(print.JSON(a.Stdout, v), err)
}

func configPrint(a *command.App, cmd *cobra.Command) error {
	l, err := a.Load(cmd, false, false)
	if err != nil {
		return err
	}
	if !a.JSON() {
		return config.Print(a.Stdout, &l.Config)
	}
	var tree map[string]any
	if err := config.YAMLNode(&l.Config).Decode(&tree); err != nil {
		return err
	}
	return print.JSON(a.Stdout, tree)
}
