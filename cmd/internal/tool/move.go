package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/move"
	"github.com/escapement/escapement/scheduler/ops"
)

const moveHelp = `Moves a namespace to another Redis, in steps. Each of them can be run again, also after
it was killed half way, and one that comes too early or too late is refused (exit 5)
with the one that is next:

  plan     changes nothing: counts what would be moved, and says what is in the way
  seal     closes the namespace: nothing starts any more, triggers are refused; returns
           when nothing runs
  copy     brings everything over, and compares
  open     opens the other side: nodes go on there
  abort    before open: undoes it all, nodes go on where they were
  status   how both sides stand, and the step that is next

--from and --to are URLs in one of these forms:
` + config.AddressForms + `
Percent-encode what is special in a password. To keep it out of the process list, leave
the flags out: the URLs are read from ` + config.MoveFromVariable + ` and ` + config.MoveToVariable + `,
or from the files that ` + config.MoveFromVariable + `_FILE and ` + config.MoveToVariable + `_FILE name. Without
any of these --from is the configured Redis, and --to is redis.next. Write the same
addresses in every step.`

// moveFlags are the flags of all steps.
type moveFlags struct {
	from, to   string
	partitions int
}

// moveTool has the clients and settings of a step of a move.
type moveTool struct {
	*command.App
	ctx      context.Context // ends at SIGINT and SIGTERM
	mover    *move.Mover
	ns       string
	from, to string        // for messages
	notes    []*ops.Client // the clients whose audits get the step: both sides
}

// Move makes the commands move.
func Move(a *command.App) *cobra.Command {
	var f moveFlags
	var drain string
	var o move.SealOptions
	step := func(use, short, long string, run func(moveTool) error) *cobra.Command {
		c := a.Command(use, short, command.Wants(), func(cmd *cobra.Command, _ []string) error { return moveStep(a, cmd, f, run) })
		c.Long = long
		return c
	}
	plan := step("plan", "say what would be moved, and what is in the way", `Reads both sides and changes nothing. Exit code 5 when seal would refuse.`, movePlan)
	plan.Example = `escapement move plan --from redis://old:6379/0 --to redis://new:6379/0`
	seal := a.Command("seal [--drain 30s] [--cancel-running]", "close the namespace, and wait until nothing runs", command.Wants(), func(cmd *cobra.Command, _ []string) error {
		var err error
		if o.Drain, err = drainOption(drain); err != nil {
			return err
		}
		return moveStep(a, cmd, f, func(t moveTool) error {
			o.Begins = func() {
				a.Report("sealing %s at %s: nothing starts from now on, and what runs is waited for, %s at most", t.ns, t.from, drain)
			}
			return moved(t, "move seal", func(ctx context.Context) (move.Status, error) { return t.mover.Seal(ctx, o) })
		})
	})
	seal.Long = `From now on nothing starts, and triggers, pauses and the like are refused. Nodes stay, and
what runs goes on: seal returns when nothing does. If that takes longer than --drain
it is refused, and can be run again. Ticks that come due meanwhile run when the namespace is
open again, at either side, by each job's own rules for late ticks.`
	seal.Example = `escapement move seal --from redis://old:6379/0 --to redis://new:6379/0 --drain 2m`
	seal.Flags().StringVar(&drain, "drain", "30s", "how long to wait for what runs, `D`; 0s: not at all")
	seal.Flags().BoolVar(&o.CancelRunning, "cancel-running", false, "have what runs end at once, recorded as cancelled")
	copying := step("copy", "bring everything over, and compare", `Copies definitions, cursors, tokens, pauses, pending runs and history. The other side must be
empty but for what an earlier try of the same move has brought.`, func(t moveTool) error {
		a.Report("copying %s from %s to %s", t.ns, t.from, t.to)
		return moved(t, "move copy", t.mover.Copy)
	})
	copying.Example = `escapement move copy --from redis://old:6379/0 --to redis://new:6379/0`
	open := step("open", "open the other side", `Opens the other side, for nodes to go on there. There is no undoing it: the way back is a
move back. Refused when the clocks of both Redis differ by more than node.max_skew.`, func(t moveTool) error {
		a.Report("opening %s at %s", t.ns, t.to)
		return moved(t, "move open", t.mover.Open)
	})
	open.Example = `escapement move open --from redis://old:6379/0 --to redis://new:6379/0`
	abort := step("abort", "before open: undo the move", `Burns the move at the other side, takes away what was copied there, and opens the namespace
where it was. Refused once open has begun, and when the other side cannot be reached: if it is lost
for good, an empty Redis at the same address is enough.`, func(t moveTool) error {
		a.Report("undoing the move of %s to %s", t.ns, t.to)
		return moved(t, "move abort", t.mover.Abort)
	})
	abort.Example = `escapement move abort --from redis://old:6379/0 --to redis://new:6379/0`
	status := step("status", "say how both sides stand, and what is next", "", moveStatus)
	status.Example = `escapement move status --from redis://old:6379/0 --to redis://new:6379/0`
	group := a.Group("move COMMAND --from URL --to URL", "move a namespace to another Redis", plan, seal, copying, open, status, abort)
	group.Long = moveHelp
	flags := group.PersistentFlags()
	flags.StringVar(&f.from, "from", "", "the `URL` of the Redis where the namespace is; default: "+config.MoveFromVariable+", else the configured one")
	flags.StringVar(&f.to, "to", "", "the `URL` of the Redis where it is to go; default: "+config.MoveToVariable+", else redis.next")
	flags.IntVar(&f.partitions, "partitions", 0, "the `number` of partitions there; 0: as many as here")
	return group
}

// drainOption reads --drain: to the library 0 is the default, and less is not to wait.
func drainOption(text string) (time.Duration, error) {
	d, err := spec.ParseDuration(text)
	switch {
	case err != nil:
		return 0, command.Usagef("--drain: %v", err)
	case d < 0 || d > 24*time.Hour:
		return 0, command.Usagef("--drain %s is outside 0s to 24h", text)
	case d == 0:
		return -1, nil
	}
	return d, nil
}

// moved carries out a step, prints the state of both sides then, and the next step.
func moved(t moveTool, name string, step func(context.Context) (move.Status, error)) error {
	s, err := step(t.ctx)
	result := err
	for _, side := range t.notes {
		unnoted := side.Note(t.ctx, ops.Action{Name: name, Target: t.ns, Detail: "from " + t.from + " to " + t.to}, result)
		err = cmp.Or(err, unnoted)
	}
	if err != nil {
		return err
	}
	return showMove(t, s)
}

func moveStatus(t moveTool) error {
	s, err := t.mover.Status(t.ctx)
	if err != nil && len(s.Problems) == 0 {
		return err
	}
	return errors.Join(showMove(t, s), err) // the records of the side that answers come with the error
}

func showMove(t moveTool, s move.Status) error {
	var err error
	if t.JSON() {
		err = print.JSON(t.Stdout, s)
	} else {
		err = printMove(t, s)
	}
	if words := nextWords(t, s); words != "" {
		t.Report("%s", words)
	}
	return err
}

// nextWords is the next right step.
func nextWords(t moveTool, s move.Status) string {
	switch s.Next {
	case move.NextSeal:
		if s.ID == "" {
			return "no move is under way: nodes run at " + t.from + "; next: move plan, then move seal"
		}
		switch {
		case s.From.Running == 1:
			return "1 run goes on; next: move seal again, or with --cancel-running; move abort undoes it all"
		case s.From.Running > 1:
			return print.Many(s.From.Running, "run") + " go on; next: move seal again, or with --cancel-running; move abort undoes it all"
		case slices.Contains([]string{"opening", "open"}, s.To.State):
			return "the other side is being opened, and " + t.from + " has lost its note of the move; next: move seal again, then move open"
		}
		return "the seal is not complete; next: move seal again; move abort undoes it all"
	case move.NextCopy:
		return "nothing runs any more; next: move copy; move abort undoes it all"
	case move.NextOpen:
		if slices.Contains([]string{"opening", "open"}, s.To.State) {
			return "the other side is being opened; next: move open again"
		}
		return "everything is copied; next: move open, from which there is no way back but a move back; move abort undoes it all"
	case move.NextAbort:
		if s.To.State == "burnt" {
			return "the move is half undone; next: move abort again"
		}
		return t.to + " knows nothing of the move any more: it was emptied, or is another one; next: move abort, or move seal and move copy again"
	case move.NextDone:
		return "the namespace lives at " + t.to + " now: nodes with redis.next go on there by themselves, others need it as their Redis; when `nodes list` there shows them all, switch the old one off"
	}
	return ""
}

func printMove(t moveTool, s move.Status) error {
	out := t.NewTable(print.Whole("SIDE"), print.Whole("STATE"), print.Column{Heading: "SINCE", Wide: true, Instant: true}, print.Wide("PARTITIONS"), print.Col("GATES"), print.Whole("JOBS"), print.Whole("RUNNING"), print.Whole("PENDING"), print.Col("ADDRESS"))
	for _, side := range []struct {
		word string
		move.Side
	}{{"from", s.From}, {"to", s.To}} {
		var gates []string
		for _, state := range []string{"open", "sealed", "filling", "burnt", "foreign"} {
			if n := side.Gates[state]; n > 0 {
				gates = append(gates, fmt.Sprintf("%d %s", n, state))
			}
		}
		since := ""
		if side.Since != nil {
			since = ops.FormatTime(*side.Since)
		}
		out.Row(side.word, side.State, since, fmt.Sprint(side.Partitions), strings.Join(gates, ", "),
			fmt.Sprint(side.Jobs), fmt.Sprint(side.Running), fmt.Sprint(side.Pending), side.Address)
	}
	return out.Flush()
}

func movePlan(t moveTool) error {
	p, err := t.mover.Plan(t.ctx)
	if err != nil {
		return err
	}
	if t.JSON() {
		err = print.JSON(t.Stdout, p)
	} else {
		n := func(n int64) string { return strconv.FormatInt(n, 10) }
		err = print.Pairs(t.Stdout, "namespace", p.Namespace, "from", p.From, "to", p.To, "move under way", cmp.Or(p.ID, "none"),
			"partitions", fmt.Sprintf("%d, there %d", p.FromPartitions, p.ToPartitions), "jobs", n(p.Jobs), "running", n(p.Running), "pending", n(p.Pending), "open ticks", n(p.Ticks),
			"rows", n(p.Rows), "unique keys", n(p.Unique), "events", n(p.Events), "drained names", n(p.Drains), "bytes", n(p.Bytes), "copy and open take about", spec.FormatDuration(time.Duration(p.Seconds)*time.Second), "clocks differ by", spec.FormatDuration(time.Duration(p.SkewMS)*time.Millisecond),
			"stays behind", strings.Join(p.StaysBehind, "; "))
	}
	if err != nil || len(p.InTheWay) == 0 {
		if err == nil {
			t.Report("nothing is in the way; next: move seal%s", map[bool]string{true: " again: a move is under way, see move status"}[p.ID != ""])
		}
		return err
	}
	return fmt.Errorf("%w: in the way is: %s", ops.ErrRefused, strings.Join(p.InTheWay, "; and "))
}
