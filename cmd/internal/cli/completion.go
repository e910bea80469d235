package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

// shells are the known shells, with the function that writes the script for each.
var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"zsh":        (*cobra.Command).GenZshCompletion,
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
}

var shellNames = []string{"bash", "zsh", "fish", "powershell"}

func (a *app) completionCommand() *cobra.Command {
	c := a.command("completion SHELL", "print a script that completes command lines in bash, zsh, fish or powershell",
		func(_ *cobra.Command, args []string) error {
			if err := wants("SHELL")(nil, args); err != nil {
				return err
			}
			if shells[args[0]] == nil {
				return fmt.Errorf("%s is not one of %s%s", print.Quote(args[0]), strings.Join(shellNames, ", "), spec.DidYouMean(args[0], shellNames))
			}
			return nil
		},
		func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root(), a.stdout) })
	c.Long = `Prints a script for the shell. Commands and flags are completed, and the names of jobs, nodes,
locks and generations and the ids of runs: those that the Redis or the API has which the command
line or the configuration names. Where it does not answer within a second, nothing is.

  bash         source <(escapement completion bash), or into /etc/bash_completion.d/escapement;
               it takes the package bash-completion
  zsh          escapement completion zsh > "${fpath[1]}/_escapement"
  fish         escapement completion fish > ~/.config/fish/completions/escapement.fish
  powershell   escapement completion powershell | Out-String | Invoke-Expression`
	c.ValidArgsFunction = words(shellNames)
	return c
}

const (
	// completeWithin bounds how long a shell waits for names.
	completeWithin = time.Second
	// completeMost is how many names a shell is given.
	completeMost = 1000
)

// completer are names that begin so.
type completer = cobra.CompletionFunc

// words completes one word of a list.
func words(all []string) completer {
	return func(_ *cobra.Command, args []string, begins string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(all, begins), cobra.ShellCompDirectiveNoFileComp
	}
}

// beginning returns the words with this beginning that a shell takes as they are, completeMost at
// most.
func beginning(all []string, begins string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(w string) bool {
		return !strings.HasPrefix(w, begins) || strings.ContainsAny(w, " \r\n") && !strings.Contains(w, "\t")
	})
	return all[:min(len(all), completeMost)]
}

// names completes a name of a list. Without an answer, and after an error, it offers no name.
func (a *app) names(list func(t tool) ([]string, error)) completer {
	return func(cmd *cobra.Command, args []string, begins string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(a.ask(cmd, list), begins), cobra.ShellCompDirectiveNoFileComp
	}
}

// ask lists names, without any output.
func (a *app) ask(cmd *cobra.Command, list func(t tool) ([]string, error)) (found []string) {
	quiet := *a
	ctx, cancel := context.WithTimeout(context.Background(), completeWithin)
	defer cancel()
	quiet.stderr, quiet.ctx = io.Discard, ctx
	_ = quiet.inspect(func(t tool) (err error) { // a shell has no place for errors
		found, err = list(t)
		return err
	})(cmd, nil)
	return found
}

// complete lets shells complete the name or run that a command takes first, by its group, and the
// flags that take such names.
func (a *app) complete(root *cobra.Command) {
	ofGroup := map[string]completer{
		"jobs": a.names(jobNames), "runs": a.names(runIDs), "nodes": a.names(nodeNames), "locks": a.names(lockNames), "generations": a.names(generationNames),
	}
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		if words := strings.Fields(c.Use); c.HasParent() && len(words) > 1 && slices.Contains([]string{"NAME", "RUN", "[NAME]", "[NAME...]"}, words[1]) {
			c.ValidArgsFunction = ofGroup[c.Parent().Name()]
		}
		for flag, f := range map[string]completer{"job": a.names(jobNames), "outcome": words(append([]string{ops.OutcomePending}, outcomes...))} {
			if c.Flags().Lookup(flag) != nil {
				_ = c.RegisterFlagCompletionFunc(flag, anywhere(f)) // it is there, and once
			}
		}
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(root)
	_ = root.RegisterFlagCompletionFunc("output", anywhere(words([]string{outputTable, outputWide, outputJSON}))) // as above
}

// anywhere completes the value of a flag, before which there may be arguments.
func anywhere(f completer) completer {
	return func(cmd *cobra.Command, _ []string, begins string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return f(cmd, nil, begins)
	}
}

func jobNames(t tool) ([]string, error) { return t.in.JobNames(t.ctx) }

// completeRuns is how many runs are named, the newest.
const completeRuns = 100

func runIDs(t tool) (all []string, err error) {
	found, err := t.in.ListRuns(t.ctx, ops.RunFilter{Limit: completeRuns})
	for _, r := range found.Items {
		if r.Run != "" {
			all = append(all, cobra.CompletionWithDesc(r.Run, print.Harmless(r.Job)+" "+outcome(r)+" "+print.Stamp(r.Tick)))
		}
	}
	return all, err
}

func nodeNames(t tool) (all []string, err error) {
	views, err := t.in.ListNodes(t.ctx)
	for _, n := range views {
		all = append(all, n.Name)
	}
	drains, _ := t.in.Drains(t.ctx) // whose nodes may be gone
	for name := range drains {
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

func lockNames(t tool) (all []string, err error) {
	found, err := t.in.ListLocks(t.ctx, ops.LockFilter{Limit: completeMost})
	for _, l := range found.Items {
		all = append(all, l.Name)
	}
	return all, err
}

func generationNames(t tool) (all []string, err error) {
	found, err := t.in.ListGenerations(t.ctx)
	for _, g := range found {
		all = append(all, g.Name)
	}
	return all, err
}
