package command

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
)

// shells are the known shells, with the function that writes the script for each.
var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"zsh":        (*cobra.Command).GenZshCompletion,
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
}

// ShellNames are the shells in the order of the help.
var ShellNames = []string{"bash", "zsh", "fish", "powershell"}

func (a *App) completionCommand() *cobra.Command {
	c := a.Command("completion SHELL", "print a script that completes command lines in bash, zsh, fish or powershell",
		func(_ *cobra.Command, args []string) error {
			if err := Wants("SHELL")(nil, args); err != nil {
				return err
			}
			if shells[args[0]] == nil {
				return fmt.Errorf("%s is not one of %s%s", print.Quote(args[0]), strings.Join(ShellNames, ", "), spec.DidYouMean(args[0], ShellNames))
			}
			return nil
		},
		func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root(), a.Stdout) })
	c.Long = `Prints a script for the shell. Commands and flags are completed, and the names of jobs, nodes,
locks and generations and the ids of runs: those that the Redis or the API has which the command
line or the configuration names. Where it does not answer within a second, nothing is.

  bash         source <(escapement completion bash), or into /etc/bash_completion.d/escapement;
               it takes the package bash-completion
  zsh          escapement completion zsh > "${fpath[1]}/_escapement"
  fish         escapement completion fish > ~/.config/fish/completions/escapement.fish
  powershell   escapement completion powershell | Out-String | Invoke-Expression`
	c.Example = `escapement completion bash
escapement completion zsh`
	c.ValidArgsFunction = CompleteWords(ShellNames)
	return c
}

const (
	// completeWithin bounds how long a shell waits for names.
	completeWithin = time.Second
	// MaxCompleted is how many names a shell is given.
	MaxCompleted = 1000
)

// CompleteWords completes one word of a list.
func CompleteWords(all []string) cobra.CompletionFunc {
	return completeFirst(func(*cobra.Command) []string { return all })
}

// completeFirst completes the first argument by a list of words.
func completeFirst(list func(*cobra.Command) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begins string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(list(cmd), begins), cobra.ShellCompDirectiveNoFileComp
	}
}

// beginning returns the words with this beginning that a shell takes as they are, MaxCompleted at
// most.
func beginning(all []string, begins string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(w string) bool {
		return !strings.HasPrefix(w, begins) || strings.ContainsAny(w, " \r\n") && !strings.Contains(w, "\t")
	})
	return all[:min(len(all), MaxCompleted)]
}

// CompleteFirst has shells complete the name or the run that the commands of a group take first.
func (a *App) CompleteFirst(group *cobra.Command, list func(t Tool) ([]string, error)) *cobra.Command {
	for _, c := range group.Commands() {
		if words := strings.Fields(c.Use); len(words) > 1 && slices.Contains([]string{"NAME", "RUN", "[NAME]", "[NAME...]"}, words[1]) {
			c.ValidArgsFunction = a.completeNames(list)
		}
	}
	return group
}

// completeNames completes a name of a list, without any output. Without an answer, and after an
// error, it offers no name.
func (a *App) completeNames(list func(t Tool) ([]string, error)) cobra.CompletionFunc {
	return completeFirst(func(cmd *cobra.Command) (found []string) {
		quiet := *a
		ctx, cancel := context.WithTimeout(context.Background(), completeWithin)
		defer cancel()
		quiet.Stderr, quiet.ctx = io.Discard, ctx
		_ = quiet.Connect(func(t Tool) (err error) { // a shell has no place for errors
			found, err = list(t)
			return err
		})(cmd, nil)
		return found
	})
}

// CompleteFlag completes the value of a flag, before which there may be arguments.
func CompleteFlag(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, begins string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return f(cmd, nil, begins)
	}) // the flag is there, and once
}

// JobNames lists the names of all jobs.
func JobNames(t Tool) ([]string, error) { return t.Client.JobNames(t.Ctx) }
