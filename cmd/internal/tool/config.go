package tool

import (
	"errors"
	"fmt"
	"io"

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

func configSchemaCommand(a *command.App) *cobra.Command {
	schema := a.Command("schema", "print a JSON schema of the configuration file, for editors", command.Wants(),
		func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.Stdout, config.SchemaText)
			return err
		})
	schema.Long = `Prints a JSON schema (draft-07) of the configuration file. An editor with a YAML language server
completes and checks settings by it where the file has the line

  # yaml-language-server: $schema=config.schema.json

The schema knows keys, types, words and defaults. config validate knows the rest.`
	schema.Example = `escapement config schema`
	return schema
}

func configInitCommand(a *command.App) *cobra.Command {
	c := a.Command("init [FILE]", "write a configuration to begin with, every setting explained", cobra.MaximumNArgs(1),
		func(_ *cobra.Command, args []string) error {
			file := a.Flags.Config
			if len(args) > 0 {
				file = args[0]
			}
			return configInit(a, file)
		})
	c.Long = `Writes FILE, by default that of --config, with every setting at its default and a few jobs. An
existing file is not overwritten; - is stdout, and a device or a pipe is written to.`
	c.Example = `escapement config init config.yaml
escapement config init - | less`
	return c
}

func configInit(a *command.App, file string) error {
	switch file {
	case "":
		return command.Usagef("FILE is missing")
	case "-":
		_, err := io.WriteString(a.Stdout, config.ExampleText)
		return err
	}
	to, err := print.FindOutFile(file, false)
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	// Secrets belong into other files.
	if err := to.WriteNew(0o644, func(w io.Writer) error { _, err := io.WriteString(w, config.ExampleText); return err }); err != nil {
		return err
	}
	a.Report("%s is written; next: set redis.url, describe your jobs, and escapement config validate %s", file, file)
	return nil
}
