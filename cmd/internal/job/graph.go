package job

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

func jobsGraphCommand(a *command.App) *cobra.Command {
	graph := a.Command("graph", "show which job follows which", command.Wants(), a.Connect(jobsGraph))
	graph.Long = `Shows the jobs that follow others, each below the jobs that it follows, and after which of their
ends it runs. A job that follows several stands below each of them; what follows it is shown at the
first place, and "above" elsewhere. It reads the definitions of all jobs.`
	graph.Example = `escapement jobs graph
escapement jobs graph -o json`
	return graph
}

func jobsGraph(t command.Tool) error {
	list, unread := t.Client.Graph(t.Ctx)
	if unread != nil && list == nil {
		return unread
	}
	if t.JSON() {
		return errors.Join(print.JSON(t.Stdout, list), t.ReportUnreadable(unread))
	}
	g := grapher{out: t.NewTable(print.Whole("JOB"), print.Col("RUNS"), print.Instant("LAST"), print.Whole("LAST OUTCOME")), by: make(map[string]ops.GraphJob), shown: make(map[string]bool)}
	for _, j := range list {
		g.by[j.Name] = j
	}
	for _, j := range list {
		if len(j.After) == 0 {
			g.show(j.Name, 0)
		}
	}
	for _, j := range list { // its upstreams are gone
		if !g.shown[j.Name] {
			g.show(j.Name, 0)
		}
	}
	err := g.out.Flush()
	if len(list) == 0 && unread == nil {
		t.Report("no job follows another one")
	}
	return errors.Join(err, t.ReportUnreadable(unread))
}

// grapher writes a tree of jobs.
type grapher struct {
	out   *print.Table
	by    map[string]ops.GraphJob
	shown map[string]bool
}

func (g grapher) show(name string, depth int) {
	j := g.by[name]
	indented := strings.Repeat("  ", depth) + name
	if g.shown[name] {
		g.out.Row(indented, "above", "", "")
		return
	}
	g.shown[name] = true
	runs := j.Schedule
	if len(j.After) > 0 {
		runs = "after " + strings.Join(j.After, ", ")
		if j.When != "succeeded" {
			runs += ", when " + j.When
		}
	}
	g.out.Row(indented, runs, g.out.At(j.Last), word(j.LastOutcome))
	for _, follower := range j.Followers {
		g.show(follower, depth+1)
	}
}
