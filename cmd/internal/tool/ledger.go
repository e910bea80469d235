package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

// Ledger makes the commands ledger.
func Ledger(a *command.App) *cobra.Command {
	var filter ops.VerifyFilter
	var since *command.TimeFlag
	verify := a.Command("verify [--job NAME] [--since T]", "check the promises on the recorded history", command.Wants(),
		func(cmd *cobra.Command, args []string) error {
			return a.Connect(func(t command.Tool) error { return ledgerVerify(t, filter, since) })(cmd, args)
		})
	verify.Long = `Recomputes, from the stored schedules and the recorded history, that the promises held:
P1, no tick was granted twice; P2, every tick has one recorded answer; P3, tokens
grow. Prints each violation with the records that show it, and exits 1 when there is
any, or when a job could not be checked. What this version does not understand is named
and left alone; so are ticks that are due and that no living node can run. It reads only, and
works beside running nodes. All keys of the Redis are looked through, unless --job is given.

The schedules are recomputed with the time zone rules of this program.

` + command.TimeForms
	verify.Example = `escapement ledger verify
escapement ledger verify --job settle-orders --since 7d`
	verify.Flags().StringVar(&filter.Job, "job", "", "only the job `NAME`")
	since = command.AddTimeFlag(verify, "since", command.Ago, "only what concerns instants since `T`: 10m is ten minutes ago")
	return a.Group("ledger COMMAND", "check the ledger", verify)
}

func ledgerVerify(t command.Tool, filter ops.VerifyFilter, since *command.TimeFlag) (err error) {
	if filter.Since, err = t.Instant(since); err != nil {
		return err
	}
	x, err := t.Client.Verify(t.Ctx, filter)
	if err != nil {
		return t.SuggestJob(filter.Job, err)
	}
	if t.JSON() {
		err = print.JSON(t.Stdout, x)
	} else {
		_, err = t.Stdout.Write([]byte(violationText(x.Violations)))
	}
	if err != nil {
		return err
	}
	for _, s := range x.UnknownFormat {
		t.Report("left alone: %s: %s", s.Key, s.What)
	}
	for _, o := range x.Overdue {
		t.Report("overdue: %s: %s from %s to %s: %s", o.Job, print.Many(o.Count, "tick"), print.Stamp(o.First), print.Stamp(o.Last), o.Why)
	}
	return verdict(t.App, x, lastLoss(t, filter.Since))
}

// lastLoss returns the last loss of records in the audit, since an instant: lost records cannot be
// checked. "" for none, and where the audit cannot be read.
func lastLoss(t command.Tool, since time.Time) string {
	const most = 20 // an operator may have this name too
	list, err := t.Client.Audit(t.Ctx, ops.ActionFilter{Who: "Redis", Since: since, Limit: most})
	if err != nil {
		return ""
	}
	for _, row := range list.Items {
		if row.Action == "records lost" && strings.HasPrefix(row.Target, "partition") { // and no drain
			return fmt.Sprintf("; Redis had lost records of %s by %s, and what was lost is not checked", row.Target, print.Stamp(row.At))
		}
	}
	return ""
}

// violationText is one line for each violation, and its evidence indented below.
func violationText(found []ops.Violation) string {
	var b strings.Builder
	for _, v := range found {
		fmt.Fprintf(&b, "%-5s  %s  %s\n", v.Promise, print.Cell(v.Job), print.Cell(v.What))
		for _, e := range v.Evidence {
			fmt.Fprintf(&b, "       %s\n", print.Cell(e))
		}
	}
	return b.String()
}

// verdict prints that all promises hold, and the part that a loss left unchecked, or returns the
// violations.
func verdict(a *command.App, x ops.Verification, loss string) error {
	checked := fmt.Sprintf("%s, %s, %s", print.Many(x.Checked.Jobs, "job"), print.Many(x.Checked.Rows, "row"), print.Many(x.Checked.Ticks, "tick"))
	var wrong []string
	broken, unverified := sorted(x)
	if broken > 0 {
		wrong = append(wrong, "the promises do not hold in the recorded history: "+print.Many(broken, "violation"))
	}
	if n := len(unverified); n > 0 {
		names := unverified[:min(n, 10)]
		wrong = append(wrong, fmt.Sprintf("%s cannot be verified, because what is stored of it cannot be read by this version: %s%s",
			print.Many(int64(n), "job"), strings.Join(names, ", "), map[bool]string{true: ", ..."}[n > len(names)]))
	}
	if len(wrong) == 0 {
		a.Report("%s: the promises held%s", checked, loss)
		return nil
	}
	return errors.New(checked + ": " + strings.Join(wrong, "; "))
}

// sorted separates violations from findings that cannot be verified, because records of the job
// cannot be read. It returns the number of the violations, and the names of the unverified jobs.
func sorted(x ops.Verification) (broken int64, unverified []string) {
	unverified = slices.Clone(x.Unverified)
	for _, v := range x.Violations {
		if strings.Contains(v.What, "cannot be verified") {
			unverified = append(unverified, v.Job)
		} else {
			broken++
		}
	}
	slices.Sort(unverified)
	return broken, slices.Compact(unverified)
}
