package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

func (a *app) jobsGraphCommand() *cobra.Command {
	graph := a.command("graph", "show which job follows which", wants(), a.inspect(a.jobsGraph))
	graph.Long = `Shows the jobs that follow others, each below the jobs that it follows, and after which of their
ends it runs. A job that follows several stands below each of them; what follows it is shown at the
first place, and "above" elsewhere. It reads the definitions of all jobs.`
	return graph
}

func (a *app) jobsGraph(t tool) error {
	list, unread := t.in.Graph(t.ctx)
	if unread != nil && list == nil {
		return unread
	}
	if a.json() {
		return errors.Join(print.JSON(a.stdout, list), a.sayLacks(unread))
	}
	g := grapher{out: a.newTable(print.Whole("JOB"), print.Col("RUNS"), print.Instant("LAST"), print.Whole("LAST OUTCOME")), by: make(map[string]ops.GraphJob), shown: make(map[string]bool)}
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
		a.say("no job follows another one")
	}
	return errors.Join(err, a.sayLacks(unread))
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
