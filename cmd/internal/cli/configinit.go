package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
)

func (a *app) configSchemaCommand() *cobra.Command {
	schema := a.command("schema", "print a JSON schema of the configuration file, for editors", wants(),
		func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.stdout, config.SchemaText)
			return err
		})
	schema.Long = `Prints a JSON schema (draft-07) of the configuration file. An editor with a YAML language server
completes and checks settings by it where the file has the line

  # yaml-language-server: $schema=config.schema.json

The schema knows keys, types, words and defaults. config validate knows the rest.`
	return schema
}

func (a *app) configInitCommand() *cobra.Command {
	command := a.command("init [FILE]", "write a configuration to begin with, every setting explained", cobra.MaximumNArgs(1),
		func(_ *cobra.Command, args []string) error {
			file := a.flags.config
			if len(args) > 0 {
				file = args[0]
			}
			return a.configInit(file)
		})
	command.Long = `Writes FILE, by default that of --config, with every setting at its default and a few jobs. An
existing file is not overwritten; - is stdout, and a device or a pipe is written to.`
	return command
}

func (a *app) configInit(file string) error {
	switch file {
	case "":
		return usagef("FILE is missing")
	case "-":
		_, err := io.WriteString(a.stdout, config.ExampleText)
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
	a.say("%s is written; next: set redis.url, describe your jobs, and escapement config validate %s", file, file)
	return nil
}
