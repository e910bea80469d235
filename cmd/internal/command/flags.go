package command

import (
	"cmp"
	"errors"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

// AuthorFlag adds --author to a command whose author is kept.
func AuthorFlag(cmd *cobra.Command, author *string) {
	cmd.Flags().StringVar(author, "author", "", "who does it, a `name`; default: "+config.AuthorVariable+", else the user's name")
}

// ReasonFlag adds --reason to commands that change something and need no reason.
func (a *App) ReasonFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.reason, "reason", "", "why, a `text` for the audit")
}

// Author returns the operator's name: by the flag, the environment, or the operating system.
func (a *App) Author(flag string) string {
	if name := cmp.Or(strings.TrimSpace(flag), strings.TrimSpace(a.Env[config.AuthorVariable])); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(a.Env["USER"], a.Env["LOGNAME"]) // a container's user may have no name; the library has a default
}

// Actor returns the operator, for the audit.
func (a *App) Actor() ops.Actor {
	return ops.Actor{Name: a.Author(""), Via: "cli", Reason: a.reason}
}

// Filled refuses flags that were given without a text, as with a script's unset variable: without
// them a command would do more than was meant.
func Filled(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return Usagef("--%s is empty; give it a value, or leave the flag out", name)
		}
	}
	return nil
}

// The default lengths of a list: fewer rows for people than for programs.
const (
	tableRows = 100
	jsonRows  = 1000
)

// PageForms is for the help of commands that list in pages.
const PageForms = `A list has at most --limit rows, by default 100, and with -o json 1000; JSON has the same rows
as the table. Where there are more, a line on stderr says with which --after the next page
begins. --limit 0 lists all: with many thousands of jobs that takes seconds.`

// LimitFlag adds --limit to a command that lists in pages.
func LimitFlag(cmd *cobra.Command, limit *int) {
	cmd.Flags().Var((*count)(limit), "limit", "at most so many, 0: all; default 100, with -o json 1000")
}

// Limit returns how many rows a list has at most: the flag's number, or the default.
func (a *App) Limit(cmd *cobra.Command, given int) int {
	switch {
	case cmd.Flags().Changed("limit"):
		return given
	case a.JSON():
		return jsonRows
	}
	return tableRows
}

// ReportNext prints where the next page begins, if there is one.
func (a *App) ReportNext(shown int, next string) {
	if next == "" {
		return
	}
	if strings.ContainsAny(next, " '\"") {
		next = "'" + strings.ReplaceAll(next, "'", `'\''`) + "'"
	}
	a.Report("%s shown; there are more: add --after %s, or --limit 0 for all", print.Many(int64(shown), "row"), next)
}

// count is the number behind a flag for the most rows of a list: 0 for all.
type count int

func (c *count) String() string { return strconv.Itoa(int(*c)) }
func (c *count) Type() string   { return "int" }

func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("it is no number of rows; 0 lists all")
	case err != nil:
		return errors.New("it is no whole number")
	case n < 0:
		return errors.New("it is negative; 0 lists all")
	}
	*c = count(n)
	return nil
}
