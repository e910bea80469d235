package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/scheduler"
)

//go:generate go test . -run TestSchemaIsFresh -update

// schemaText and exampleText are made from config.go and the repository's config.yaml by TestSchemaIsFresh.
var (
	//go:embed config.schema.json
	schemaText string
	//go:embed example.yaml
	exampleText string
)

func (a *app) configSchemaCommand() *cobra.Command {
	schema := a.command("schema", "print a JSON schema of the configuration file, for editors", wants(),
		func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.stdout, schemaText)
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
existing file is not overwritten; - is stdout.`
	return command
}

func (a *app) configInit(file string) error {
	switch file {
	case "":
		return usagef("FILE is missing")
	case "-":
		_, err := io.WriteString(a.stdout, exampleText)
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // the operator names the file; secrets belong into others
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s exists, and is left as it is; name another FILE", scheduler.ErrRefused, file)
	}
	if err != nil {
		return plainPathError(err)
	}
	_, err = f.WriteString(exampleText)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	a.say("%s is written; next: set redis.url, describe your jobs, and escapement config validate %s", file, file)
	return nil
}
