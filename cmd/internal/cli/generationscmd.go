package cli

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

// unnamed is how tables show, and commands take, the generation whose name is "".
const unnamed = "-"

func (a *app) generationsCommand() *cobra.Command {
	list := a.command("list", "list the generations, and what each would change", wants(), a.inspect(a.generationsList))
	list.Long = `Lists the deployed clusters of the namespace (node.generation), and below them, job by job, what
would be another one if each were promoted, with the ticks of the next 24 hours. STATE is
active for the one that new jobs go to, standby for others, and promoting while a promotion
is under way. JOBS are those that it has, JOBS RUN those that are its now. The generation
without a name is shown as ` + unnamed + `.`
	return a.group("generations COMMAND", "list deployed clusters, and promote one", list, a.promoteCommand())
}

func (a *app) generationsList(t tool) error {
	views, err := t.in.ListGenerations(t.ctx)
	if err != nil {
		return err
	}
	if a.json() {
		return print.JSON(a.stdout, print.List(views))
	}
	out := a.newTable(print.Whole("GENERATION"), print.Col("STATE"), print.Whole("NODES"), print.Whole("JOBS"), print.Whole("JOBS RUN"))
	for _, g := range views {
		out.Row(g.Name, promoting(g), strconv.Itoa(g.Nodes.Count), strconv.Itoa(g.Jobs), strconv.Itoa(g.Running))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return a.printDifferences(views)
}

// promoting returns the state, with the pattern of the jobs that are being promoted.
func promoting(g ops.GenerationView) string {
	if p := g.Promotion; p != nil && p.Pattern != "" {
		return g.State + " " + p.Pattern
	}
	return g.State
}

// printDifferences lists, for each generation, the changes that its promotion would make.
func (a *app) printDifferences(views []ops.GenerationView) error {
	out := a.newTable(print.Col("PROMOTED"), print.Whole("JOB"), print.Whole("WHAT"), print.Col("NOW"), print.Col("THEN"))
	row := func(g ops.GenerationView, cells ...string) {
		out.Row(append([]string{g.Name}, cells...)...)
	}
	for _, g := range views {
		for _, c := range g.Schedules {
			row(g, c.Job, "schedule", runsAt(c.Now), runsAt(c.New))
		}
		more(g.Changed.Schedules-len(g.Schedules), "schedule", g, row)
		for _, c := range g.Settings {
			row(g, c.Job, "settings", "", strings.Join(c.Fields, ", "))
		}
		more(g.Changed.Settings-len(g.Settings), "settings", g, row)
		for _, n := range []struct {
			what string
			ops.Names
		}{{"added", g.Added}, {"nobody runs it", g.Removed}, {"just started", g.Unsettled}} {
			for _, job := range n.First {
				row(g, job, n.what)
			}
			more(n.Count-len(n.First), n.what, g, row)
		}
	}
	if len(out.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(a.stdout)
	return out.Flush()
}

// more is a row with the number of entries that a list leaves out.
func more(n int, what string, g ops.GenerationView, row func(ops.GenerationView, ...string)) {
	if n > 0 {
		row(g, fmt.Sprintf("and %d more", n), what)
	}
}

// runsAt is "*/5 * * * * (Europe/Berlin), 288 ticks a day".
func runsAt(s ops.ScheduleView) string {
	if s.After != "" {
		return "after " + s.After
	}
	zone := ""
	if s.TimeZone != "" && s.TimeZone != "UTC" {
		zone = " (" + s.TimeZone + ")"
	}
	return fmt.Sprintf("%s%s, %s a day", s.Schedule, zone, print.Many(int64(s.Ticks), "tick"))
}

func (a *app) promoteCommand() *cobra.Command {
	var o ops.PromoteOptions
	var author string
	promote := a.command("promote NAME [--job PATTERN] [--cancel-running] [--force]", "make a generation the one that runs", wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if err := filled(cmd, "job"); err != nil {
				return err
			}
			if _, err := path.Match(o.Pattern, ""); err != nil || strings.ContainsAny(o.Pattern, "|\n") {
				return usagef("--job %q is no pattern: use * ? and [a-z] as in file names", o.Pattern)
			}
			o.Author = a.author(author)
			return a.inspect(func(t tool) error { return a.promote(t, o) })(cmd, args)
		})
	promote.Long = `Makes the definitions of the generation NAME those that are run: of all jobs, or of those
whose names match --job. Its nodes claim within a second, those of others stop at once.
Runs that are going end by themselves, and hold their jobs until then. Interrupted, it goes
on when it is run again, and counts then what it still had to do itself. A promotion of the
generation that was active before is the way back.
NAME is ` + unnamed + ` or "" for the generation without a name. Refused, with exit code 5, while no node
of it is alive, or no job matches --job.`
	promote.Flags().StringVar(&o.Pattern, "job", "", "only jobs whose names match the `pattern`, as of file names: 'billing-*'; new jobs stay the active generation's")
	promote.Flags().BoolVar(&o.CancelRunning, "cancel-running", false, "end what nodes of other generations run of these jobs")
	promote.Flags().BoolVar(&o.Force, "force", false, "although no living node has the generation, and nothing runs until one does")
	authorFlag(promote, &author)
	return promote
}

func (a *app) promote(t tool, o ops.PromoteOptions) error {
	name := t.args[0]
	if name == unnamed {
		name = ""
	}
	p, err := t.in.Promote(t.ctx, name, o)
	if err != nil {
		return err
	}
	if a.json() {
		err = print.JSON(a.stdout, p)
	} else {
		err = print.Pairs(a.stdout, "generation", p.Generation, "pattern", p.Pattern, "epoch", strconv.FormatInt(p.Epoch, 10),
			"switched", names(p.Switched), "created", names(p.Created), "orphaned", names(p.Orphaned),
			"left out", names(p.LeftOut), "left alone", names(p.UnknownFormat), "cancelled", strconv.Itoa(p.Cancelled))
	}
	a.sayPromoted(p)
	return err
}

// sayPromoted prints the result of a promotion, and possible next steps.
func (a *app) sayPromoted(p ops.Promotion) {
	who := "generation " + print.Cell(p.Generation)
	if p.Resumed {
		a.say("promotion %d had begun before and was brought to its end; the numbers are what this call did", p.Epoch)
	}
	switch {
	case p.Nothing() && p.Pattern == "":
		a.say("%s is active already; nothing is changed", who)
	case p.Nothing():
		a.say("%s runs these jobs already; nothing is changed", who)
	case p.Pattern == "":
		a.say("%s is active, by promotion %d%s", who, p.Epoch, wayBack(p))
	default:
		a.say("%s runs the jobs %s, by promotion %d; which one is active has not changed%s", who, p.Pattern, p.Epoch, wayBack(p))
	}
	if p.Orphaned.Count > 0 {
		are, them := "are", "them"
		if p.Orphaned.Count == 1 {
			are, them = "is", "it"
		}
		a.say("%s of another generation %s nobody's now; when the old nodes are stopped, `jobs delete` takes %s away", print.Many(int64(p.Orphaned.Count), "job"), are, them)
	}
	if p.UnknownFormat.Count > 0 {
		a.say("left alone: %s that this version cannot read", print.Many(int64(p.UnknownFormat.Count), "job"))
	}
}

// wayBack returns the command that undoes a promotion; "" when an interrupted one had already
// replaced the active generation.
func wayBack(p ops.Promotion) string {
	if p.Was == p.Generation {
		return ""
	}
	command := "generations promote " + cmp.Or(p.Was, `""`)
	if p.Pattern != "" {
		command += " --job '" + p.Pattern + "'"
	}
	return "; the way back: `" + command + "`"
}

// names are "3: a, b, c", "" for none.
func names(n ops.Names) string {
	if n.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("%d: %s", n.Count, strings.Join(n.First, ", "))
	if n.Count > len(n.First) {
		text += ", ..."
	}
	return text
}
