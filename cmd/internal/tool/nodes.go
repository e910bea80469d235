// Package tool has the tools for a namespace as a whole, and for configurations.
package tool

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

// restsEvery is how often nodes drain --wait looks.
const restsEvery = 250 * time.Millisecond

// Nodes makes the commands nodes.
func Nodes(a *command.App) *cobra.Command {
	list := a.Command("list", "list the nodes", command.Wants(), a.Connect(nodesList))
	list.Long = `JOBS are those that the node holds, OWNED those of them for which it goes first: a job in
shards counts on each node that goes first for a part of it, one with placement race on
each node that may run it. STATE is standby where another generation runs all of the node's
jobs. Jobs of which a newer definition is stored are superseded: the node does not run them.`
	list.Example = `escapement nodes list
escapement nodes list -o wide`
	return a.CompleteFirst(a.Group("nodes COMMAND", "list, drain and resume nodes", list, nodesDrainCommand(a), nodesResumeCommand(a)), nodeNames)
}

func nodesList(t command.Tool) error {
	views, unread := t.Client.ListNodes(t.Ctx)
	if views == nil && unread != nil {
		return unread
	}
	drains, err := t.Client.Drains(t.Ctx)
	if err != nil {
		return err
	}
	for _, n := range views {
		delete(drains, n.Name)
	}
	if !slices.ContainsFunc(views, alive) {
		t.ReportFull(t)
	}
	if t.JSON() {
		err = print.JSON(t.Stdout, print.List(views))
	} else {
		closed, _ := t.Client.Closed(t.Ctx) // its error is printed below the list
		err = printNodes(t, views, closed != "")
	}
	if len(drains) > 0 { // such a node would do nothing after its return
		t.Report("drained, and not there: %s", strings.Join(slices.Sorted(maps.Keys(drains)), ", "))
	}
	return errors.Join(err, t.ReportUnreadable(unread))
}

// alive reports whether a node has not gone.
func alive(n ops.NodeView) bool { return n.State != "gone" }

// printNodes prints nodes of a namespace, which a move may have closed.
func printNodes(t command.Tool, views []ops.NodeView, closed bool) error {
	out := t.NewTable(print.Whole("NAME"), print.Whole("STATE"), print.Col("GENERATION"), print.Whole("JOBS"), print.Whole("OWNED"), print.Whole("RUNNING"), print.Whole("CLOCK"), print.Wide("VERSION"),
		print.Column{Heading: "SEEN", Wide: true, Instant: true}, print.Wide("ID"), print.Col("NOTE"))
	for _, n := range views {
		out.Row(n.Name, n.State, n.Generation, strconv.Itoa(n.Jobs), strconv.Itoa(n.Owned), strconv.Itoa(n.Running),
			spec.FormatDuration(n.ClockOffset), n.Version, out.At(n.Seen), n.ID, nodeNote(out, n, closed))
	}
	return out.Flush()
}

// nodeNote returns the work that a node does not do, and why.
func nodeNote(t *print.Table, n ops.NodeView, closed bool) string {
	var notes []string
	if closed && alive(n) {
		notes = append(notes, "closed by a move")
	}
	if n.Superseded > 0 {
		notes = append(notes, print.Many(int64(n.Superseded), "job")+" superseded by another definition")
	}
	if n.Standby > 0 && n.State != "standby" {
		notes = append(notes, print.Many(int64(n.Standby), "job")+" on standby")
	}
	if n.Trouble != "" {
		notes = append(notes, "in trouble: "+n.Trouble)
	}
	if r := n.ConfigRefused; r != nil {
		notes = append(notes, "configuration refused since "+t.At(r.At)+": "+r.Text)
	}
	if note := drainNote(n.Drain); note != "" {
		notes = append(notes, note)
	}
	return strings.Join(notes, "; ")
}

// drainNote returns who drained a node and why, "" for a node that is not drained.
func drainNote(d *ops.DrainView) string {
	switch {
	case d == nil:
		return ""
	case d.Since.IsZero():
		return "drained, in a record that this version cannot read"
	case d.Reason == "":
		return "drained by " + d.Author
	}
	return "drained by " + d.Author + ": " + d.Reason
}

func nodesDrainCommand(a *command.App) *cobra.Command {
	var author, reason string
	var wait bool
	drain := a.Command("drain NAME [--reason TEXT] [--wait]", "let a node finish what runs and take nothing new", command.Wants("NAME"),
		onNode(a, func(t command.Tool) error {
			if err := t.Client.DrainNode(t.Ctx, t.Args[0], ops.DrainOptions{Author: a.Author(author), Reason: reason}); err != nil {
				return err
			}
			if !wait {
				return reportNode(t, "is drained: it hands over what it owns and finishes what runs; nodes resume ends that")
			}
			if err := awaitRest(t); err != nil {
				return err
			}
			return reportNode(t, "is drained, and nothing runs there")
		}))
	drain.Long = `The node claims nothing new, hands over what it owns within three seconds, finishes
what runs, and stays in the list as draining until nodes resume. It is the name that
is drained: a node that is started anew under it drains too.`
	drain.Example = `escapement nodes drain a1 --reason "new disk" --wait`
	drain.Flags().StringVar(&reason, "reason", "", "why, a `text`")
	drain.Flags().BoolVar(&wait, "wait", false, "wait until nothing runs there any more")
	command.AuthorFlag(drain, &author)
	return drain
}

func nodesResumeCommand(a *command.App) *cobra.Command {
	resume := a.Command("resume NAME [--reason TEXT]", "let a drained node work again", command.Wants("NAME"), onNode(a, func(t command.Tool) error {
		drains, err := t.Client.Drains(t.Ctx)
		if err != nil {
			return err
		}
		if err := t.Client.ResumeNode(t.Ctx, t.Args[0]); err != nil {
			return err
		}
		if _, drained := drains[t.Args[0]]; !drained {
			return reportNode(t, "was not drained; nothing is changed")
		}
		views, _ := t.Client.ListNodes(t.Ctx)
		if views != nil && !slices.ContainsFunc(views, func(n ops.NodeView) bool { return n.Name == t.Args[0] }) {
			return reportNode(t, "is resumed; it is not there at present, and works when it comes back")
		}
		return reportNode(t, "is resumed; it claims again within a second")
	}))
	resume.Example = `escapement nodes resume a1`
	a.ReasonFlag(resume)
	resume.SuggestFor = []string{"undrain"}
	return resume
}

// onNode is Connect for a command whose argument is a node's name.
func onNode(a *command.App, f func(command.Tool) error) func(*cobra.Command, []string) error {
	return a.Connect(func(t command.Tool) error {
		err := f(t)
		if !errors.Is(err, ops.ErrUnknownNode) {
			return err
		}
		var names []string
		views, _ := t.Client.ListNodes(t.Ctx) // it only is to help
		for _, n := range views {
			names = append(names, n.Name)
		}
		return fmt.Errorf("%w%s", err, spec.DidYouMean(t.Args[0], names))
	})
}

// reportNode prints the state of a node: in words, or as in nodes list, where several nodes may
// have its name.
func reportNode(t command.Tool, words string) error {
	if !t.JSON() {
		t.Report("node %s %s", t.Args[0], words)
		return nil
	}
	views, err := t.Client.ListNodes(t.Ctx)
	if err = t.ReportUnreachable(err); err != nil {
		return fmt.Errorf("node %s %s: %w", t.Args[0], words, err)
	}
	return print.JSON(t.Stdout, print.List(slices.DeleteFunc(views, func(n ops.NodeView) bool { return n.Name != t.Args[0] })))
}

// awaitRest waits until nothing runs on a drained node.
func awaitRest(t command.Tool) error {
	name, reported := t.Args[0], false
	err := t.Await("node "+name, restsEvery, 0, func() (bool, error) {
		rests, err := t.Client.NodeIdle(t.Ctx, name)
		if err == nil && rests {
			return true, nil
		}
		reported = reported || reportRunning(t)
		drains, lost := t.Client.Drains(t.Ctx)
		if _, drained := drains[name]; !drained && err == nil && lost == nil {
			return false, fmt.Errorf("node %s is drained no longer, before it came to rest: somebody resumed it, or Redis has lost the drain", name)
		}
		return false, cmp.Or(err, lost)
	})
	if errors.Is(err, command.ErrInterrupted) {
		return fmt.Errorf("wait for node %s, which goes on draining: %w", name, err)
	}
	return err
}

// reportRunning prints the runs that a drain waits for, and reports whether there are any: a node may
// only be handing over yet.
func reportRunning(t command.Tool) bool {
	running := 0
	views, _ := t.Client.ListNodes(t.Ctx) // it only is to help
	for _, n := range views {
		if n.Name == t.Args[0] {
			running += n.Running
		}
	}
	if running > 0 {
		t.Report("waiting for %s on %s", print.Many(int64(running), "run"), t.Args[0])
	}
	return running > 0
}

func nodeNames(t command.Tool) (all []string, err error) {
	views, err := t.Client.ListNodes(t.Ctx)
	for _, n := range views {
		all = append(all, n.Name)
	}
	drains, _ := t.Client.Drains(t.Ctx) // whose nodes may be gone
	for name := range drains {
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}
