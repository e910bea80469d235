package cli

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

// app is one invocation of the program.
type app struct {
	stdin     io.Reader
	stdout    io.Writer // data
	stderr    io.Writer // words
	env       map[string]string
	logWriter *logWriter      // stderr of a program that goes on without a reader
	ctx       context.Context // of a command that looks into Redis; nil: it has as long as it takes

	flags    globalFlags
	reason   string // --reason of commands whose options have none
	reached  bool   // a command ran; an error before that is one of usage
	helpless error  // the error of help for words that are no command
}

// globalFlags are the flags of every command.
type globalFlags struct {
	redis     string
	namespace string
	output    string
	config    string
	api       string
}

// Run carries out one command line, without the program's name, and returns the
// exit code. env is in the form of os.Environ.
func (a *app) Run(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	a.stdin, a.stdout, a.stderr = stdin, stdout, stderr
	a.env = make(map[string]string, len(env))
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			a.env[name] = value
		}
	}
	if slices.Equal(args, []string{"--version"}) {
		args = []string{"version"}
	}
	logging.Disable() // go-redis logs each failed dial past our log; the errors have it
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // nil would stand for the arguments of this process
	cmd, err := root.ExecuteC()
	err = cmp.Or(err, a.helpless)
	defer a.flushLog()
	if err == nil {
		return exitDone
	}
	if !a.reached {
		err = usageError{err}
	}
	var ended endedError
	var command commandError
	ran := errors.As(err, &command)
	if !ran && !errors.As(err, &ended) { // their words have been printed
		fmt.Fprintln(a.stderr, print.HarmlessLines(a.explain(cmd, err)))
	}
	code := exitCode(err)
	if cmd.Name() == lockName && !ran {
		a.tellOurs(code)
	}
	return code
}

// interruptible is the context of a command that looks into Redis; it ends at SIGINT and SIGTERM.
func (a *app) interruptible() (context.Context, context.CancelFunc) {
	ctx := a.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// say writes a line of words to stderr. The words may come from any job, so control characters are
// escaped.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.stderr, "escapement: "+print.HarmlessLines(fmt.Sprintf(format, args...)))
}

// explain returns the text of an error for a person: a line for each fault of the configuration,
// the usage line below an error of usage.
func (a *app) explain(cmd *cobra.Command, err error) string {
	switch exitCode(err) {
	case exitConfig:
		return err.Error()
	case exitUsage:
		return fmt.Sprintf("escapement: %v\nusage: %s\nsee %s --help", err, cmd.UseLine(), cmd.CommandPath())
	default:
		return "escapement: " + err.Error()
	}
}

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := a.group("escapement COMMAND", "Runs each tick of each job on exactly one of many machines")
	root.Long = root.Short + ".\n\n" + exitCodes
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	global := root.PersistentFlags()
	global.StringVar(&a.flags.redis, "redis", "", "the `URL` of Redis: redis://, rediss://, unix://, or a Cluster or sentinels as in move --help")
	global.StringVar(&a.flags.namespace, "namespace", "", "the `name` that keeps two installations in one Redis apart")
	global.StringVar(&a.flags.api, "api", "", "the `URL` of a node's HTTP address, in place of --redis; the token is in "+config.APITokenVariable)
	global.StringVarP(&a.flags.output, "output", "o", outputTable, "table (cut to the width of a page on a terminal), wide (all columns, uncut) or json")
	global.StringVar(&a.flags.config, "config", "config.yaml", "the configuration `file`; empty: none")
	root.AddCommand(a.devCommand(), a.runCommand(), a.configCommand(), a.cronCommand(), a.jobsCommand(),
		a.runsCommand(), a.nodesCommand(), a.locksCommand(), a.lockCommand(), a.generationsCommand(), a.moveCommand(),
		a.backupCommand(), a.restoreCommand(), a.ledgerCommand(), a.auditCommand(), a.notifyCommand(), a.doctorCommand(), a.completionCommand(), a.healthCommand(), a.versionCommand())
	root.SetHelpFunc(a.help(root.HelpFunc()))
	root.SetHelpCommand(a.helpCommand())
	addExamples(root)
	a.complete(root)
	return root
}

// help is cobra's help for existing commands. Words behind a group that are none of its commands
// are an error: cobra would show the group's help, with the exit code of success. Of a group cobra
// shows two forms, of which one is refused.
func (a *app) help(standard func(*cobra.Command, []string)) func(*cobra.Command, []string) {
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
		_, _ = io.WriteString(a.stdout, strings.ReplaceAll(once, "[command]", "COMMAND")) // as cobra, which looks at no error either
	}
}

func (a *app) helpCommand() *cobra.Command {
	return a.command("help [COMMAND]", "say more about a command", cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		about, words, err := cmd.Root().Find(args)
		if err == nil && about.HasSubCommands() && len(words) > 0 {
			err = about.ValidateArgs(words)
		}
		if err != nil {
			return usageError{err}
		}
		about.InitDefaultHelpFlag()
		return about.Help()
	})
}

// command builds a leaf of the tree.
func (a *app) command(use, short string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
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

// group builds a command that only has subcommands; by itself it is an error of usage.
func (a *app) group(use, short string, commands ...*cobra.Command) *cobra.Command {
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

// load reads the configuration for a command. Only a node needs the file to be
// there; a tool whose user named none takes the one in the current directory if
// it is there.
func (a *app) load(cmd *cobra.Command, mustExist bool) (*config.Loaded, error) {
	return a.loadFor(cmd, mustExist, false)
}

// loadTool is load for a command that needs the connection alone.
func (a *app) loadTool(cmd *cobra.Command) (*config.Loaded, error) {
	return a.loadFor(cmd, false, true)
}

func (a *app) loadFor(cmd *cobra.Command, mustExist, tool bool) (*config.Loaded, error) {
	src := config.Source{File: a.flags.config, Naming: "--config FILE", Env: a.env, Flags: map[string]config.FlagValue{}, Tool: tool}
	if cmd.Name() == "validate" {
		src.Naming = cmd.UseLine()
	}
	src.Optional = !mustExist && !cmd.Flags().Changed("config")
	if _, err := os.Stat(src.File); src.Optional && os.IsNotExist(err) {
		src.File, src.Optional = "", false
	}
	if cmd.Flags().Changed("redis") {
		src.Flags["redis.url"] = config.FlagValue{Flag: "--redis", Text: a.flags.redis}
	}
	if cmd.Flags().Changed("namespace") {
		src.Flags["namespace"] = config.FlagValue{Flag: "--namespace", Text: a.flags.namespace}
	}
	for flag, path := range map[string]string{"driver": "locks.driver", "servers": "locks.servers"} { // of lock
		if cmd.Flags().Changed(flag) {
			src.Flags[path] = config.FlagValue{Flag: "--" + flag, Text: cmd.Flags().Lookup(flag).Value.String()}
		}
	}
	if mustExist && src.File == "" {
		return nil, usagef("a node needs a configuration file; name it with --config FILE")
	}
	l, err := config.Load(src)
	if err != nil && src.Optional {
		a.say("the config.yaml of the current directory is read; --config \"\" reads none")
	}
	return l, err
}

// The words of -o.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputJSON  = "json"
)

// newTable makes the table of a command, as -o has it.
func (a *app) newTable(columns ...print.Column) *print.Table {
	return print.NewTable(a.stdout, a.flags.output == outputWide, columns...)
}

// checkOutput refuses other words of -o.
func (a *app) checkOutput() error {
	words := []string{outputTable, outputWide, outputJSON}
	if slices.Contains(words, a.flags.output) {
		return nil
	}
	return usagef("-o %s is not one of %s%s", print.Quote(a.flags.output), strings.Join(words, ", "), spec.DidYouMean(a.flags.output, words))
}

// wants checks the number of arguments by their names: "NAME".
func wants(names ...string) cobra.PositionalArgs {
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

// json reports whether the output is to be JSON.
func (a *app) json() bool { return a.flags.output == outputJSON }
