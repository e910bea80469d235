package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// violationJSON is one broken promise as ledger verify prints it.
type violationJSON struct {
	Job  string `json:"job"`
	What string `json:"what"`
}

func (a *app) ledgerCommand() *cobra.Command {
	var job string
	verify := a.command("verify [--job NAME]", "check the promises on the recorded history", wants(),
		a.inspect(func(t tool) error { return a.ledgerVerify(t, job) }))
	verify.Long = `Checks that the recorded history of each job closes: every tick accounted for
once, tokens rising. Prints what is wrong and exits 1 when anything is.`
	verify.Flags().StringVar(&job, "job", "", "only the job `NAME`")
	return a.group("ledger COMMAND", "check the ledger", verify)
}

func (a *app) ledgerVerify(t tool, job string) error {
	found, err := t.in.Verify(t.ctx, job)
	if err != nil {
		return err
	}
	rows := []violationJSON{}
	for _, v := range found {
		rows = append(rows, violationJSON{v.Job, v.What})
	}
	switch {
	case a.json():
		err = printJSON(a.stdout, rows)
	case len(rows) == 0:
		fmt.Fprintln(a.stdout, "the history closes")
	default:
		out := newTable(a.stdout, "JOB", "WHAT")
		for _, r := range rows {
			out.row(r.Job, r.What)
		}
		err = out.flush()
	}
	if err == nil && len(rows) > 0 {
		err = fmt.Errorf("%d promises do not hold in the recorded history", len(rows))
	}
	return err
}
