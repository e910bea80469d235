package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/print"
)

// The default lengths of a list: fewer rows for people than for programs.
const (
	tableRows = 100
	jsonRows  = 1000
)

// pageForms is for the help of commands that list in pages.
const pageForms = `A list has at most --limit rows, by default 100, and with -o json 1000; JSON has the same rows
as the table. Where there are more, a line on stderr says with which --after the next page
begins. --limit 0 lists all: with many thousands of jobs that takes seconds.`

// limitFlag adds --limit to a command that lists in pages.
func limitFlag(cmd *cobra.Command, limit *int) {
	cmd.Flags().Var((*count)(limit), "limit", "at most so many, 0: all; default 100, with -o json 1000")
}

// limit returns how many rows a list has at most: the flag's number, or the default.
func (a *app) limit(cmd *cobra.Command, given int) int {
	switch {
	case cmd.Flags().Changed("limit"):
		return given
	case a.json():
		return jsonRows
	}
	return tableRows
}

// sayMore prints where the next page begins, if there is one.
func (a *app) sayMore(shown int, next string) {
	if next == "" {
		return
	}
	if strings.ContainsAny(next, " '\"") {
		next = "'" + strings.ReplaceAll(next, "'", `'\''`) + "'"
	}
	a.say("%s shown; there are more: add --after %s, or --limit 0 for all", print.Many(int64(shown), "row"), next)
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
