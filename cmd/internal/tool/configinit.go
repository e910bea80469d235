package tool

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
)

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
