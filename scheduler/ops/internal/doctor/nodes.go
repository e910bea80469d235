package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

const (
	// clockWarning and clockError are how far a node's wall clock may be from Redis'. Ticks follow
	// Redis' clock; calls of the wall clock in a job's function do not.
	clockWarning = 250 * time.Millisecond
	clockError   = time.Second
	// settled is how old the youngest node is when a deployment is over that replaces nodes one
	// after another.
	settled = 10 * time.Minute
	// supersededLong and standbyLong are how long a node may run beside newer ones, and stand by,
	// before a warning that it may be forgotten.
	supersededLong = time.Hour
	standbyLong    = 24 * time.Hour
)

// node is a living node, and how many of its jobs it does not claim.
type node struct {
	roster.Member
	inspect.Idle
}

// nodes looks at each node, and returns the living ones.
func (d *doctor) nodes(ctx context.Context) ([]node, error) {
	view, err := d.Roster().Look(ctx)
	if err != nil {
		return nil, redisconn.Explain(d.Client, d.Namespace, redisconn.Classify("read the roster", err))
	}
	idle, err := inspect.IdleJobs(ctx, d.l, d.Roster())
	if err = d.lacking(err); err != nil {
		return nil, err
	}
	drains, err := d.Roster().Drains(ctx)
	if err != nil {
		return nil, redisconn.Classify("read the drains", err)
	}
	if view.UnknownFormat > 0 {
		d.add("node_unreadable", Warning, onNamespace, d.Namespace, fmt.Sprintf("records of nodes that this version cannot read: %d", view.UnknownFormat), "look with the version that those nodes run")
	}
	names := make(map[string]int)
	var living []node
	for _, m := range view.Members {
		if m.State != roster.StateGone {
			living = append(living, node{m, idle[m.Set]})
			names[m.Name]++
		}
	}
	slices.SortFunc(living, func(a, b node) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	for _, n := range living {
		d.node(n)
	}
	for _, name := range slices.Sorted(maps.Keys(drains)) {
		if names[name] == 0 {
			d.add("drain_without_node", Warning, onNode, name, "the name is drained, and no node has it: one that starts with it would claim nothing", "`nodes resume "+name+"`")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] > 1 {
			d.add("node_same_name", Warning, onNode, name, fmt.Sprintf("%d living nodes have this name: a drain is of all of them", names[name]), "set node.name (ESCAPEMENT_NODE_NAME; Config.Name in a Go program) where several nodes share a host name")
		}
	}
	d.differ("node_revisions", living, "revisions", "when no deployment is under way, replace the nodes that were left over", func(n node) string { return n.Revision })
	d.differ("node_versions", living, "versions of the program", "when no deployment is under way, replace the nodes that were left over", func(n node) string { return n.Version })
	d.differ("node_zone_data", living, "versions of the time zone rules", "update the package tzdata on all machines, or build the nodes from one image: where the rules differ, nodes compute other ticks",
		func(n node) string { return n.ZoneData })
	return living, nil
}

// living checks that some node claims.
func (d *doctor) living(nodes []node) {
	switch {
	case len(nodes) == 0 && d.to.takesNoWrites():
		d.add("no_living_node", Error, onNamespace, d.Namespace, "no node can write that it lives: nothing runs", "mend the server, see above; nodes that run go on by themselves")
	case len(nodes) == 0:
		d.add("no_living_node", Error, onNamespace, d.Namespace, "no node lives: nothing runs", "start nodes; when they do run, see their logs and whether Redis takes writes")
	case !slices.ContainsFunc(nodes, func(n node) bool { return n.State == roster.StateActive }):
		d.add("nobody_claims", Error, onNamespace, d.Namespace, "all living nodes are draining or on standby: nothing new begins", "`nodes resume NAME`, or promote their generation (`generations list`)")
	}
}

// node looks at one living node.
func (d *doctor) node(n node) {
	add := func(code, severity, text, cure string) {
		d.add(code, severity, onNode, cmp.Or(n.Name, n.ID), text, cure)
	}
	age := time.Duration(0)
	if !n.Started.IsZero() {
		age = d.now.Sub(n.Started)
	}
	if n.Trouble != "" {
		add("node_trouble", Error, "it claims nothing, or not everything: "+wire.OneLine(n.Trouble), "mend what it names; its log and /readyz say more")
	}
	if r := n.Refused; r != nil {
		add("config_refused", Warning, fmt.Sprintf("it has refused a changed configuration since %s and goes on with the jobs that it had: %s", at(r.At), wire.OneLine(r.Text)),
			"correct the file; the node reads it again by itself. Its log says what is wrong, as does `escapement config validate`")
	}
	if off := time.Duration(max(n.OffsetMS, -n.OffsetMS)) * time.Millisecond; off > clockWarning {
		severity := Warning
		if off > clockError {
			severity = Error
		}
		add("node_clock", severity, fmt.Sprintf("its clock is %d ms away from that of Redis; ticks are in time all the same, what its jobs read from the clock is not", off.Milliseconds()), "let NTP or chrony set the clocks of its machine and of Redis'")
	}
	if n.Revision == "" {
		add("node_no_revision", Warning, "it has no revision: whether its definitions are newer than those of others is decided by who registers last", "build from a checkout with .git, or set node.revision (ESCAPEMENT_NODE_REVISION; Config.Revision in a Go program)")
	}
	if n.Superseded > 0 && age > supersededLong {
		add("node_superseded", Warning, fmt.Sprintf("%d of its jobs are stored in another definition, and it does not run them", n.Superseded), "replace it by the newer build, or deploy its own with a greater revision")
	}
	if n.State == roster.StateStandby && age > standbyLong {
		add("node_standby_long", Warning, "it stands by for more than a day: generation "+strconv.Quote(n.Generation)+" does not run", "promote its generation (`generations list` says what would change), or stop it")
	}
}

// differ notes that living nodes of one generation differ in a value, once no node is young any
// more. Nodes without a value are left out.
func (d *doctor) differ(code string, nodes []node, what, cure string, of func(node) string) {
	by := make(map[string]map[string][]string) // generation -> value -> names
	for _, n := range nodes {
		if !n.Started.IsZero() && d.now.Sub(n.Started) < settled {
			return
		}
		value := of(n)
		if value == "" {
			continue
		}
		if by[n.Generation] == nil {
			by[n.Generation] = make(map[string][]string)
		}
		by[n.Generation][value] = append(by[n.Generation][value], n.Name)
	}
	for _, generation := range slices.Sorted(maps.Keys(by)) {
		values := by[generation]
		if len(values) < 2 {
			continue
		}
		var words []string
		for _, value := range slices.Sorted(maps.Keys(values)) {
			words = append(words, fmt.Sprintf("%s (%s)", value, someOf(values[value])))
		}
		d.add(code, Warning, onGeneration, generation, fmt.Sprintf("its nodes have %d %s: %s", len(values), what, someOf(words)), cure)
	}
}

// someOf are the first names of a list, and how many more there are.
func someOf(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
