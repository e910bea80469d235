package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) nodesCommand() *cobra.Command {
	list := a.command("list", "list the nodes", wants(), a.inspect(a.nodesList))
	return a.group("nodes COMMAND", "list nodes", list)
}

func (a *app) nodesList(t tool) error {
	views, err := t.in.Nodes(t.ctx)
	if err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.stdout, list(views))
	}
	out := newTable(a.stdout, "NAME", "STATE", "JOBS", "OWNED", "RUNNING", "CLOCK", "VERSION", "SEEN", "ID")
	for _, n := range views {
		out.row(n.Name, n.State, strconv.Itoa(n.Jobs), strconv.Itoa(n.Owned), strconv.Itoa(n.Running),
			shortDuration(time.Duration(n.ClockOffsetMS)*time.Millisecond), n.Version, stamp(n.Seen), n.ID)
	}
	return out.flush()
}
