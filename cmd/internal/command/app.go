// Package command has what every command of the program needs: flags, the connection to a namespace,
// exit codes, completion and the log.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
)

// App is one invocation of a program of commands.
type App struct {
	Commands []func(*App) *cobra.Command // make the commands, in the order of the help

	Stdin  io.Reader
	Stdout io.Writer // data
	Stderr io.Writer // words
	Env    map[string]string
	Flags  Flags

	Failed   func(cmd *cobra.Command, err error) // called once the error is printed; nil: nothing
	ctx      context.Context                     // of a command that reads Redis; nil: no limit of time
	reason   string                              // --reason of commands whose options have none
	reached  bool                                // a command ran; an error before that is one of usage
	helpless error                               // the error of help for words that are no command
}

// Flags are the flags of every command.
type Flags struct {
	redis     string
	namespace string
	Output    string
	Config    string
	api       string
}

// Run carries out one command line, without the program's name, and returns the
// exit code. env is in the form of os.Environ.
func (a *App) Run(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	a.Stdin, a.Stdout, a.Stderr = stdin, stdout, stderr
	a.Env = make(map[string]string, len(env))
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			a.Env[name] = value
		}
	}
	if slices.Equal(args, []string{"--version"}) {
		args = []string{"version"}
	}
	logging.Disable() // go-redis logs each failed dial past our log; the errors have it
	root := a.Root()
	root.SetArgs(append([]string{}, args...)) // nil would stand for the arguments of this process
	cmd, err := root.ExecuteC()
	err = cmp.Or(err, a.helpless)
	defer a.flushLog()
	if err == nil {
		return ExitDone
	}
	if !a.reached {
		err = WithCode(ExitUsage, err)
	}
	if !errors.As(err, new(Ended)) {
		fmt.Fprintln(a.Stderr, print.HarmlessLines(a.explain(cmd, err)))
	}
	if a.Failed != nil {
		a.Failed(cmd, err)
	}
	return ExitCode(err)
}

// Interruptible is the context of a command that looks into Redis; it ends at SIGINT and SIGTERM.
func (a *App) Interruptible() (context.Context, context.CancelFunc) {
	ctx := a.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// Report writes a line of words to stderr. The words may come from any job, so control characters are
// escaped.
func (a *App) Report(format string, args ...any) {
	fmt.Fprintln(a.Stderr, "escapement: "+print.HarmlessLines(fmt.Sprintf(format, args...)))
}

// explain returns the text of an error for a person: a line for each fault of the configuration,
// the usage line below an error of usage.
func (a *App) explain(cmd *cobra.Command, err error) string {
	switch ExitCode(err) {
	case ExitConfig:
		return err.Error()
	case ExitUsage:
		return fmt.Sprintf("escapement: %v\nusage: %s\nsee %s --help", err, cmd.UseLine(), cmd.CommandPath())
	default:
		return "escapement: " + err.Error()
	}
}

// Root builds the tree of commands.
func (a *App) Root() *cobra.Command {
	root := a.Group("escapement COMMAND", "Runs each tick of each job on exactly one of many machines")
	root.Long = root.Short + ".\n\n" + exitCodes
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	global := root.PersistentFlags()
	global.StringVar(&a.Flags.redis, "redis", "", "the `URL` of Redis: redis://, rediss://, unix://, or a Cluster or sentinels as in move --help")
	global.StringVar(&a.Flags.namespace, "namespace", "", "the `name` that keeps two installations in one Redis apart")
	global.StringVar(&a.Flags.api, "api", "", "the `URL` of a node's HTTP address, in place of --redis; the token is in "+config.APITokenVariable)
	global.StringVarP(&a.Flags.Output, "output", "o", outputTable, "table (cut to the width of a page on a terminal), wide (all columns, uncut) or json")
	global.StringVar(&a.Flags.Config, "config", "config.yaml", "the configuration `file`; empty: none")
	CompleteFlag(root, "output", CompleteWords([]string{outputTable, outputWide, outputJSON}))
	for _, command := range a.Commands {
		root.AddCommand(command(a))
	}
	root.AddCommand(a.completionCommand())
	root.SetHelpFunc(a.help(root.HelpFunc()))
	root.SetHelpCommand(a.helpCommand())
	a.finish(root)
	return root
}

// finish indents the examples of a command and of the commands below it, and has shells complete
// the flags that take the name of a job.
func (a *App) finish(cmd *cobra.Command) {
	if cmd.Example != "" {
		cmd.Example = "  " + strings.ReplaceAll(cmd.Example, "\n", "\n  ")
	}
	if cmd.Flags().Lookup("job") != nil {
		CompleteFlag(cmd, "job", a.completeNames(JobNames))
	}
	for _, c := range cmd.Commands() {
		a.finish(c)
	}
}

// help is cobra's help for existing commands. Words behind a group that are none of its commands
// are an error: cobra would show the group's help, with the exit code of success. Of a group cobra
// shows two forms, of which one is refused.
func (a *App) help(standard func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		if !cmd.HasSubCommands() {
			standard(cmd, args)
			return
		}
		if words := cmd.Flags().Args(); len(words) > 0 {
			a.helpless = cmd.ValidateArgs(words)
			return
		}
		var text strings.Builder
		cmd.SetOut(&text)
		standard(cmd, args)
		once := strings.Replace(text.String(), "\n  "+cmd.CommandPath()+" [command]\n", "\n", 1)
		_, _ = io.WriteString(a.Stdout, strings.ReplaceAll(once, "[command]", "COMMAND")) // as cobra, which looks at no error either
	}
}

func (a *App) helpCommand() *cobra.Command {
	return a.Command("help [COMMAND]", "say more about a command", cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		about, words, err := cmd.Root().Find(args)
		if err == nil && about.HasSubCommands() && len(words) > 0 {
			err = about.ValidateArgs(words)
		}
		if err != nil {
			return WithCode(ExitUsage, err)
		}
		about.InitDefaultHelpFlag()
		return about.Help()
	})
}

// Command builds a leaf of the tree.
func (a *App) Command(use, short string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.reached = true
			if err := a.checkOutput(); err != nil {
				return err
			}
			return run(cmd, args)
		},
	}
}

// Group builds a command that only has subcommands; by itself it is an error of usage.
func (a *App) Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short, DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			var names []string
			meant := ""
			for _, c := range cmd.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
				if len(args) > 0 && slices.Contains(c.SuggestFor, args[0]) {
					meant = "; did you mean " + c.Name()
				}
			}
			if len(args) == 0 {
				return fmt.Errorf("a command is missing: one of %s", strings.Join(names, ", "))
			}
			return fmt.Errorf("there is no command %s here, but %s%s", print.Quote(args[0]), strings.Join(names, ", "), cmp.Or(meant, spec.DidYouMean(args[0], names)))
		},
		RunE: func(*cobra.Command, []string) error { return nil }, // Args has refused everything
	}
	g.AddCommand(commands...)
	return g
}

// Load reads the configuration for a command. Only a node needs the file to be
// there; a tool whose user named none takes the one in the current directory if
// it is there. tool: the command needs the connection alone.
func (a *App) Load(cmd *cobra.Command, mustExist, tool bool) (*config.Loaded, error) {
	src := config.Source{File: a.Flags.Config, Naming: "--config FILE", Env: a.Env, Flags: map[string]config.FlagValue{}, Tool: tool}
	if cmd.Name() == "validate" {
		src.Naming = cmd.UseLine()
	}
	src.Optional = !mustExist && !cmd.Flags().Changed("config")
	if _, err := os.Stat(src.File); src.Optional && os.IsNotExist(err) {
		src.File, src.Optional = "", false
	}
	if cmd.Flags().Changed("redis") {
		src.Flags["redis.url"] = config.FlagValue{Flag: "--redis", Text: a.Flags.redis}
	}
	if cmd.Flags().Changed("namespace") {
		src.Flags["namespace"] = config.FlagValue{Flag: "--namespace", Text: a.Flags.namespace}
	}
	for flag, path := range map[string]string{"driver": "locks.driver", "servers": "locks.servers"} { // of lock
		if cmd.Flags().Changed(flag) {
			src.Flags[path] = config.FlagValue{Flag: "--" + flag, Text: cmd.Flags().Lookup(flag).Value.String()}
		}
	}
	if mustExist && src.File == "" {
		return nil, Usagef("a node needs a configuration file; name it with --config FILE")
	}
	l, err := config.Load(src)
	if err != nil && src.Optional {
		a.Report("the config.yaml of the current directory is read; --config \"\" reads none")
	}
	return l, err
}

// The words of -o.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputJSON  = "json"
)

// NewTable makes the table of a command, as -o has it.
func (a *App) NewTable(columns ...print.Column) *print.Table {
	return print.NewTable(a.Stdout, a.Wide(), columns...)
}

// Wide reports whether tables are to have all columns.
func (a *App) Wide() bool { return a.Flags.Output == outputWide }

// checkOutput refuses other words of -o.
func (a *App) checkOutput() error {
	words := []string{outputTable, outputWide, outputJSON}
	if slices.Contains(words, a.Flags.Output) {
		return nil
	}
	return Usagef("-o %s is not one of %s%s", print.Quote(a.Flags.Output), strings.Join(words, ", "), spec.DidYouMean(a.Flags.Output, words))
}

// Wants checks the number of arguments by their names: "NAME".
func Wants(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		if len(args) > len(names) {
			return fmt.Errorf("unexpected argument %s", print.Quote(args[len(names)]))
		}
		return nil
	}
}

// JSON reports whether the output is to be JSON.
func (a *App) JSON() bool { return a.Flags.Output == outputJSON }
