package cli

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

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
)

// restsEvery is how often nodes drain --wait looks.
const restsEvery = 250 * time.Millisecond

func (a *app) nodesCommand() *cobra.Command {
	list := a.command("list", "list the nodes", wants(), a.inspect(a.nodesList))
	list.Long = `JOBS are those that the node holds, OWNED those of them for which it goes first: a job in
shards counts on each node that goes first for a part of it, one with placement race on
each node that may run it. STATE is standby where another generation runs all of the node's
jobs. Jobs of which a newer definition is stored are superseded: the node does not run them.`
	return a.group("nodes COMMAND", "list, drain and resume nodes", list, a.nodesDrainCommand(), a.nodesResumeCommand())
}

func (a *app) nodesList(t tool) error {
	views, unread := t.in.ListNodes(t.ctx)
	if views == nil && unread != nil {
		return unread
	}
	drains, err := t.in.Drains(t.ctx)
	if err != nil {
		return err
	}
	for _, n := range views {
		delete(drains, n.Name)
	}
	if !slices.ContainsFunc(views, alive) {
		a.sayFull(t)
	}
	if a.json() {
		err = print.JSON(a.stdout, print.List(views))
	} else {
		closed, _ := t.in.Closed(t.ctx) // its error is printed below the list
		err = a.printNodes(views, closed != "")
	}
	if len(drains) > 0 { // such a node would do nothing after its return
		a.say("drained, and not there: %s", strings.Join(slices.Sorted(maps.Keys(drains)), ", "))
	}
	return errors.Join(err, a.sayLacks(unread))
}

// alive reports whether a node has not gone.
func alive(n ops.NodeView) bool { return n.State != "gone" }

// printNodes prints nodes of a namespace, which a move may have closed.
func (a *app) printNodes(views []ops.NodeView, closed bool) error {
	out := a.newTable(print.Whole("NAME"), print.Whole("STATE"), print.Col("GENERATION"), print.Whole("JOBS"), print.Whole("OWNED"), print.Whole("RUNNING"), print.Whole("CLOCK"), print.Wide("VERSION"),
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

func (a *app) nodesDrainCommand() *cobra.Command {
	var author, reason string
	var wait bool
	drain := a.command("drain NAME [--reason TEXT] [--wait]", "let a node finish what runs and take nothing new", wants("NAME"),
		a.inspectNode(func(t tool) error {
			if err := t.in.DrainNode(t.ctx, t.args[0], ops.DrainOptions{Author: a.author(author), Reason: reason}); err != nil {
				return err
			}
			if !wait {
				return a.nodeStands(t, "is drained: it hands over what it owns and finishes what runs; nodes resume ends that")
			}
			if err := a.awaitRest(t); err != nil {
				return err
			}
			return a.nodeStands(t, "is drained, and nothing runs there")
		}))
	drain.Long = `The node claims nothing new, hands over what it owns within three seconds, finishes
what runs, and stays in the list as draining until nodes resume. It is the name that
is drained: a node that is started anew under it drains too.`
	drain.Flags().StringVar(&reason, "reason", "", "why, a `text`")
	drain.Flags().BoolVar(&wait, "wait", false, "wait until nothing runs there any more")
	authorFlag(drain, &author)
	return drain
}

func (a *app) nodesResumeCommand() *cobra.Command {
	resume := a.command("resume NAME [--reason TEXT]", "let a drained node work again", wants("NAME"), a.inspectNode(func(t tool) error {
		drains, err := t.in.Drains(t.ctx)
		if err != nil {
			return err
		}
		if err := t.in.ResumeNode(t.ctx, t.args[0]); err != nil {
			return err
		}
		if _, drained := drains[t.args[0]]; !drained {
			return a.nodeStands(t, "was not drained; nothing is changed")
		}
		views, _ := t.in.ListNodes(t.ctx)
		if views != nil && !slices.ContainsFunc(views, func(n ops.NodeView) bool { return n.Name == t.args[0] }) {
			return a.nodeStands(t, "is resumed; it is not there at present, and works when it comes back")
		}
		return a.nodeStands(t, "is resumed; it claims again within a second")
	}))
	a.reasonFlag(resume)
	resume.SuggestFor = []string{"undrain"}
	return resume
}

// inspectNode is inspect for a command whose argument is a node's name.
func (a *app) inspectNode(f func(tool) error) func(*cobra.Command, []string) error {
	return a.inspect(func(t tool) error {
		err := f(t)
		if !errors.Is(err, ops.ErrUnknownNode) {
			return err
		}
		var names []string
		views, _ := t.in.ListNodes(t.ctx) // it only is to help
		for _, n := range views {
			names = append(names, n.Name)
		}
		return fmt.Errorf("%w%s", err, spec.DidYouMean(t.args[0], names))
	})
}

// nodeStands prints the state of a node: in words, or as in nodes list, where several nodes may
// have its name.
func (a *app) nodeStands(t tool, words string) error {
	if !a.json() {
		a.say("node %s %s", t.args[0], words)
		return nil
	}
	views, err := t.in.ListNodes(t.ctx)
	if err = a.sayUnheard(err); err != nil {
		return fmt.Errorf("node %s %s: %w", t.args[0], words, err)
	}
	return print.JSON(a.stdout, print.List(slices.DeleteFunc(views, func(n ops.NodeView) bool { return n.Name != t.args[0] })))
}

// awaitRest waits until nothing runs on a drained node, through outages of Redis too.
func (a *app) awaitRest(t tool) error {
	name, told, said := t.args[0], false, false
	for {
		rests, err := t.in.NodeIdle(t.ctx, name)
		if err == nil && rests {
			return nil
		}
		said = said || a.sayRuns(t)
		drains, lost := t.in.Drains(t.ctx)
		_, drained := drains[name]
		switch err = cmp.Or(err, lost); {
		case t.ctx.Err() != nil: // checked below
		case errors.Is(err, locking.ErrUnreachable) && !told:
			told = true
			a.say("Redis does not answer; still waiting for node %s, until interrupted: %v", name, err)
		case errors.Is(err, locking.ErrUnreachable):
		case err != nil:
			return err
		case !drained:
			return fmt.Errorf("node %s is drained no longer, before it came to rest: somebody resumed it, or Redis has lost the drain", name)
		}
		select {
		case <-t.ctx.Done():
			return fmt.Errorf("wait for node %s, which goes on draining: %w", name, errInterrupted)
		case <-time.After(restsEvery):
		}
	}
}

// sayRuns prints the runs that a drain waits for, and reports whether there are any: a node may
// only be handing over yet.
func (a *app) sayRuns(t tool) bool {
	running := 0
	views, _ := t.in.ListNodes(t.ctx) // it only is to help
	for _, n := range views {
		if n.Name == t.args[0] {
			running += n.Running
		}
	}
	if running > 0 {
		a.say("waiting for %s on %s", print.Many(int64(running), "run"), t.args[0])
	}
	return running > 0
}
