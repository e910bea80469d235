package tool

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

// unnamed is how tables show, and commands take, the generation whose name is "".
const unnamed = "-"

// Generations makes the commands generations.
func Generations(a *command.App) *cobra.Command {
	list := a.Command("list", "list the generations, and what each would change", command.Wants(), a.Connect(generationsList))
	list.Long = `Lists the deployed clusters of the namespace (node.generation), and below them, job by job, what
would be another one if each were promoted, with the ticks of the next 24 hours. STATE is
active for the one that new jobs go to, standby for others, and promoting while a promotion
is under way. JOBS are those that it has, JOBS RUN those that are its now. The generation
without a name is shown as ` + unnamed + `.`
	list.Example = `escapement generations list`
	return a.CompleteFirst(a.Group("generations COMMAND", "list deployed clusters, and promote one", list, promoteCommand(a)), generationNames)
}

func generationsList(t command.Tool) error {
	views, err := t.Client.ListGenerations(t.Ctx)
	if err != nil {
		return err
	}
	if t.JSON() {
		return print.JSON(t.Stdout, print.List(views))
	}
	out := t.NewTable(print.Whole("GENERATION"), print.Col("STATE"), print.Whole("NODES"), print.Whole("JOBS"), print.Whole("JOBS RUN"))
	for _, g := range views {
		out.Row(g.Name, promoting(g), strconv.Itoa(g.Nodes.Count), strconv.Itoa(g.Jobs), strconv.Itoa(g.Running))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return printDifferences(t, views)
}

// promoting returns the state, with the pattern of the jobs that are being promoted.
func promoting(g ops.GenerationView) string {
	if p := g.Promotion; p != nil && p.Pattern != "" {
		return g.State + " " + p.Pattern
	}
	return g.State
}

// printDifferences lists, for each generation, the changes that its promotion would make.
func printDifferences(t command.Tool, views []ops.GenerationView) error {
	out := t.NewTable(print.Col("PROMOTED"), print.Whole("JOB"), print.Whole("WHAT"), print.Col("NOW"), print.Col("THEN"))
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
	fmt.Fprintln(t.Stdout)
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

func promoteCommand(a *command.App) *cobra.Command {
	var o ops.PromoteOptions
	var author string
	promote := a.Command("promote NAME [--job PATTERN] [--cancel-running] [--force]", "make a generation the one that runs", command.Wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if err := command.Filled(cmd, "job"); err != nil {
				return err
			}
			if _, err := path.Match(o.Pattern, ""); err != nil || strings.ContainsAny(o.Pattern, "|\n") {
				return command.Usagef("--job %q is no pattern: use * ? and [a-z] as in file names", o.Pattern)
			}
			o.Author = a.Author(author)
			return a.Connect(func(t command.Tool) error { return promote(t, o) })(cmd, args)
		})
	promote.Long = `Makes the definitions of the generation NAME those that are run: of all jobs, or of those
whose names match --job. Its nodes claim within a second, those of others stop at once.
Runs that are going end by themselves, and hold their jobs until then. Interrupted, it goes
on when it is run again, and counts then what it still had to do itself. A promotion of the
generation that was active before is the way back.
NAME is ` + unnamed + ` or "" for the generation without a name. Refused, with exit code 5, while no node
of it is alive, or no job matches --job.`
	promote.Example = `escapement generations promote green --job "report-*"
escapement generations promote green --cancel-running`
	promote.Flags().StringVar(&o.Pattern, "job", "", "only jobs whose names match the `pattern`, as of file names: 'billing-*'; new jobs stay the active generation's")
	promote.Flags().BoolVar(&o.CancelRunning, "cancel-running", false, "end what nodes of other generations run of these jobs")
	promote.Flags().BoolVar(&o.Force, "force", false, "although no living node has the generation, and nothing runs until one does")
	command.AuthorFlag(promote, &author)
	return promote
}

func promote(t command.Tool, o ops.PromoteOptions) error {
	name := t.Args[0]
	if name == unnamed {
		name = ""
	}
	p, err := t.Client.Promote(t.Ctx, name, o)
	if err != nil {
		return err
	}
	if t.JSON() {
		err = print.JSON(t.Stdout, p)
	} else {
		err = print.Pairs(t.Stdout, "generation", p.Generation, "pattern", p.Pattern, "epoch", strconv.FormatInt(p.Epoch, 10),
			"switched", names(p.Switched), "created", names(p.Created), "orphaned", names(p.Orphaned),
			"left out", names(p.LeftOut), "left alone", names(p.UnknownFormat), "cancelled", strconv.Itoa(p.Cancelled))
	}
	reportPromotion(t, p)
	return err
}

// reportPromotion prints the result of a promotion, and possible next steps.
func reportPromotion(t command.Tool, p ops.Promotion) {
	who := "generation " + print.Cell(p.Generation)
	if p.Resumed {
		t.Report("promotion %d had begun before and was brought to its end; the numbers are what this call did", p.Epoch)
	}
	switch {
	case p.Nothing() && p.Pattern == "":
		t.Report("%s is active already; nothing is changed", who)
	case p.Nothing():
		t.Report("%s runs these jobs already; nothing is changed", who)
	case p.Pattern == "":
		t.Report("%s is active, by promotion %d%s", who, p.Epoch, wayBack(p))
	default:
		t.Report("%s runs the jobs %s, by promotion %d; which one is active has not changed%s", who, p.Pattern, p.Epoch, wayBack(p))
	}
	if p.Orphaned.Count > 0 {
		are, them := "are", "them"
		if p.Orphaned.Count == 1 {
			are, them = "is", "it"
		}
		t.Report("%s of another generation %s nobody's now; when the old nodes are stopped, `jobs delete` takes %s away", print.Many(int64(p.Orphaned.Count), "job"), are, them)
	}
	if p.UnknownFormat.Count > 0 {
		t.Report("left alone: %s that this version cannot read", print.Many(int64(p.UnknownFormat.Count), "job"))
	}
}

// wayBack returns the command that undoes a promotion; "" when an interrupted one had already
// replaced the active generation.
func wayBack(p ops.Promotion) string {
	if p.Was == p.Generation {
		return ""
	}
	line := "generations promote " + cmp.Or(p.Was, `""`)
	if p.Pattern != "" {
		line += " --job '" + p.Pattern + "'"
	}
	return "; the way back: `" + line + "`"
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

func generationNames(t command.Tool) (all []string, err error) {
	found, err := t.Client.ListGenerations(t.Ctx)
	for _, g := range found {
		all = append(all, g.Name)
	}
	return all, err
}
