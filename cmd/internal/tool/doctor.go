package tool

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

// Doctor makes the command doctor.
func Doctor(a *command.App) *cobra.Command {
	doctor := a.Command("doctor", "look for what is wrong, and say what to do", command.Wants(), a.Connect(doctor))
	doctor.Long = `Looks at Redis (version, persistence, eviction, memory, replicas, clocks, permissions, slots of
a Cluster), at the nodes (clocks, revisions, versions, time zone rules, trouble, standby), at the
jobs (that no living node can run, overdue, paused for long) and at the namespace (moves,
promotions, keys that this version does not know). Prints each finding with a cure, errors first,
at most 20 of a kind one by one. It changes nothing.

An error is what harms now, or will at the next crash; a warning is what may harm one day, or is
perhaps meant so. Exits 1 when there is an error, 0 when there are warnings at most. All keys of
the Redis are looked through.`
	doctor.Example = `escapement doctor
escapement doctor --api http://10.0.0.7:8080
escapement doctor -o json | jq -r '.[] | select(.severity == "error") | .text'`
	return doctor
}

func doctor(t command.Tool) error {
	found, err := t.Client.Problems(t.Ctx)
	if err != nil {
		return err
	}
	errors, warnings := 0, 0
	for _, p := range found {
		n := max(1, p.Count)
		if p.Severity == ops.SeverityError {
			errors += n
		} else {
			warnings += n
		}
	}
	if t.JSON() {
		err = print.JSON(t.Stdout, print.List(found))
	} else {
		_, err = t.Stdout.Write([]byte(problemText(found)))
	}
	switch {
	case err != nil:
		return err
	case errors > 0:
		return fmt.Errorf("%s and %s", print.Many(int64(errors), "error"), print.Many(int64(warnings), "warning"))
	case warnings > 0:
		t.Report("no error and %s", print.Many(int64(warnings), "warning"))
	default:
		t.Report("nothing is wrong")
	}
	return nil
}

// problemText returns a paragraph for each problem: the problem and its place, and indented below
// it the cure.
func problemText(found []ops.Problem) string {
	var b strings.Builder
	for k, p := range found {
		on := ""
		if p.On != "" {
			on = p.Kind + " " + p.On + ": "
		}
		fmt.Fprintf(&b, "%-7s  %s%s\n", p.Severity, print.Harmless(on), print.Harmless(p.Text))
		if last := k+1 == len(found) || found[k+1].Code != p.Code || found[k+1].Cure != p.Cure; last {
			fmt.Fprintf(&b, "         cure: %s\n", print.Harmless(p.Cure))
		}
	}
	return b.String()
}
