package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// NodeView is a node, as tools and the API show it. See Encode for its JSON.
type NodeView struct {
	ID          string        `json:"id"`
	Name        string        `json:"name"`
	Generation  string        `json:"generation"`
	State       string        `json:"state"` // active, standby, draining, gone
	Jobs        int           `json:"jobs"`
	Owned       int           `json:"owned"`
	Running     int           `json:"running"`
	ClockOffset time.Duration `json:"clock_offset_ms"` // Redis' clock minus the node's
	Version     string        `json:"version"`
	Started     time.Time     `json:"started"`
	Seen        time.Time     `json:"seen"`
	Revision    string        `json:"revision"`
	ZoneData    string        `json:"zone_data"` // version of the time zone rules that its schedules follow
	// Trouble is why the node claims nothing, or not everything, although it is not drained, as in
	// /readyz.
	Trouble string `json:"trouble,omitempty"`
	// ConfigRefused is set when the node has refused a change of its configuration, and goes on
	// with the jobs that it had.
	ConfigRefused *RefusedView `json:"config_refused,omitempty"`
	// Superseded is how many of the node's jobs are stored in another definition of its generation,
	// Standby how many another generation runs. The node claims neither. Only jobs that living nodes
	// hold in several definitions are counted.
	Superseded int `json:"superseded"`
	Standby    int `json:"standby"`
	// Drain is who drained the node's name, and why. State changes to draining with the node's
	// next heartbeat.
	Drain *DrainView `json:"drain,omitempty"`
}

// DrainView is since when a name is drained, by whom and why. All fields are empty when a newer
// version recorded it.
type DrainView struct {
	Since  time.Time `json:"since"`
	Author string    `json:"author"`
	Reason string    `json:"reason"`
}

// RefusedView is since when a node refuses a changed configuration, and why, or where it is wrong.
type RefusedView struct {
	At   time.Time `json:"at"` // of the first refusal since the node had its configuration
	Text string    `json:"text"`
}

var rowNodes = row(&Operation[matchIn, []NodeView]{
	Info: Info{Method: "GET", Path: "nodes", Role: Viewer, Summary: "the nodes by name"},
	do: func(ctx context.Context, c *conn, in matchIn) ([]NodeView, error) {
		all, err := listNodes(ctx, c)
		return slices.DeleteFunc(all, func(n NodeView) bool { return !matches(n.Name, in.Match) }), err
	},
})

// ListNodes lists the nodes in the roster by name, recently departed nodes too. Jobs of unreachable
// partitions do not count as superseded or on standby. Records in an unknown format are counted in
// an error that wraps ErrUnknownFormat and comes with the other nodes.
func (c *Client) ListNodes(ctx context.Context) ([]NodeView, error) {
	return call(ctx, c, rowNodes, matchIn{})
}

func listNodes(ctx context.Context, c *conn) ([]NodeView, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	seen, err := c.Roster().Look(ctx)
	if err != nil {
		return nil, redisconn.Explain(c.Client, c.Namespace, redisconn.Classify("list nodes", err))
	}
	members := seen.Members
	idle, err := inspect.IdleJobs(ctx, l, c.Roster())
	left, err := beside(err)
	if err != nil {
		return nil, err
	}
	drains, err := listDrains(ctx, c)
	if err != nil {
		return nil, err
	}
	views := make([]NodeView, len(members))
	for k, m := range members {
		views[k] = nodeView(m)
		views[k].Superseded, views[k].Standby = idle[m.Set].Superseded, idle[m.Set].Standby
		if d, drained := drains[m.Name]; drained {
			views[k].Drain = &d
		}
	}
	slices.SortFunc(views, func(a, b NodeView) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	return views, errors.Join(left, leftOut("nodes", seen.UnknownFormat))
}

var rowDrains = read("drains", "the drained names of nodes", plain(listDrains))

// Drains lists the drained names, also names without a node at present.
func (c *Client) Drains(ctx context.Context) (map[string]DrainView, error) {
	return call(ctx, c, rowDrains, None{})
}

func listDrains(ctx context.Context, c *conn) (map[string]DrainView, error) {
	drains, err := c.Roster().Drains(ctx)
	if err != nil {
		err = redisconn.Classify("read the drains", err)
		redisconn.Refresh(ctx, c.Client, err)
		return nil, err
	}
	views := make(map[string]DrainView, len(drains))
	for name, d := range drains {
		views[name] = DrainView{Since: timeOf(work.Millis(d.Since)), Author: d.Author, Reason: d.Reason}
	}
	return views, nil
}

// DrainOptions are who drains a node, and why. The zero value is useful.
type DrainOptions struct {
	// Author is who drains it; at most 64 bytes are kept. Default "unknown".
	Author string
	// Reason is for people who find the node drained; at most 256 bytes are kept. Default none.
	Reason string `json:"reason,omitempty"`
}

type drainIn struct {
	named
	DrainOptions
}

var rowDrain = row(&Operation[drainIn, None]{
	Info: Info{Method: "POST", Path: "nodes/{name}/drain", Role: Operator, Audit: "nodes drain", Summary: "let the nodes of a name claim nothing new"},
	do: func(ctx context.Context, c *conn, in drainIn) (None, error) {
		return done(drainNode(ctx, c, in.Name, in.DrainOptions))
	},
	note: func(in drainIn, _ None) Action {
		return Action{Target: in.Name, Author: in.Author, Reason: in.Reason}
	},
})

// DrainNode drains the nodes of a name until ResumeNode: they claim nothing new, hand over the jobs
// that they own within three seconds, finish their runs, and stay in the roster as draining. The
// drain belongs to the name, so a process that starts with that name drains too. A repeated call
// replaces the author and the reason. DrainNode does not wait; use NodeIdle. It returns
// ErrUnknownNode unless a node of that name is in the roster or the name is drained, and ErrRefused
// when too many names are drained and for a text that is not UTF-8.
func (c *Client) DrainNode(ctx context.Context, name string, o DrainOptions) error {
	_, err := call(ctx, c, rowDrain, drainIn{named{name}, o})
	return err
}

func drainNode(ctx context.Context, c *conn, name string, o DrainOptions) (err error) {
	o.Author, o.Reason = c.by(o.Author, o.Reason)
	if err := utf8Only("drain node "+name, o.Author, o.Reason); err != nil {
		return err
	}
	_, members, err := readMembers(ctx, c)
	if err != nil {
		return err
	}
	drains, err := listDrains(ctx, c)
	if err != nil {
		return err
	}
	if _, drained := drains[name]; !drained && !hasName(members, name) {
		return unknownNode(name)
	}
	err = c.Roster().Drain(ctx, name, roster.Drained{Author: author(o.Author), Reason: wire.OneLine(o.Reason)})
	if errors.Is(err, roster.ErrTooManyDrains) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return redisconn.Classify("drain node", err)
}

var rowResumeNode = row(&Operation[why, None]{
	Info: Info{Method: "POST", Path: "nodes/{name}/resume", Role: Operator, Audit: "nodes resume", Summary: "end the drain of a name"},
	do:   func(ctx context.Context, c *conn, in why) (None, error) { return done(resumeNode(ctx, c, in.Name)) },
	note: func(in why, _ None) Action { return Action{Target: in.Name, Reason: in.Reason} },
})

// ResumeNode ends the drain of a name; its nodes claim again after their next heartbeat. It changes
// nothing if the name is not drained. It returns ErrUnknownNode for a name that is neither drained
// nor in the roster.
func (c *Client) ResumeNode(ctx context.Context, name string) error {
	_, err := call(ctx, c, rowResumeNode, why{named: named{name}})
	return err
}

func resumeNode(ctx context.Context, c *conn, name string) (err error) {
	_, members, err := readMembers(ctx, c)
	if err != nil {
		return err
	}
	resumed, err := c.Roster().Resume(ctx, name)
	if err != nil {
		return redisconn.Classify("resume node", err)
	}
	if !resumed && !hasName(members, name) {
		return unknownNode(name)
	}
	return nil
}

// Rests is whether the nodes of a name run nothing, and will run nothing until they are resumed.
type Rests struct {
	Rests bool `json:"rests"`
}

var rowIdle = row(&Operation[named, Rests]{
	Info: Info{Method: "GET", Path: "nodes/{name}/rests", Role: Viewer, Summary: "whether the nodes of a drained name run nothing any more"},
	do: func(ctx context.Context, c *conn, in named) (r Rests, err error) {
		r.Rests, err = nodeIdle(ctx, c, in.Name)
		return r, err
	},
})

// NodeIdle reports whether the nodes of a name run nothing, and will run nothing until they are
// resumed. Nodes that are gone are idle when the ledger has no run of theirs.
func (c *Client) NodeIdle(ctx context.Context, name string) (bool, error) {
	r, err := call(ctx, c, rowIdle, named{name})
	return r.Rests, err
}

func nodeIdle(ctx context.Context, c *conn, name string) (bool, error) {
	l, members, err := readMembers(ctx, c)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(members, func(m roster.Member) bool {
		v := nodeView(m)
		return v.Name == name && v.State != roster.StateGone && (v.State != roster.StateDraining || v.Owned > 0 || v.Running > 0)
	}) {
		return false, nil
	}
	_, parts, err := query.Count(ctx, l)
	if err != nil {
		return false, err
	}
	open, err := query.InFlightIn(ctx, l, parts)
	if err != nil {
		return false, err
	}
	for _, o := range open {
		if o.NodeName == name && !o.Pending() {
			return false, nil
		}
	}
	return true, nil
}

// members reads the roster of an existing namespace.
func readMembers(ctx context.Context, c *conn) (*ledger.Ledger, []roster.Member, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	members, err := c.Roster().Members(ctx)
	return l, members, redisconn.Classify("list nodes", err)
}

func hasName(members []roster.Member, name string) bool {
	return slices.ContainsFunc(members, func(m roster.Member) bool { return m.Name == name })
}

func unknownNode(name string) error {
	return fmt.Errorf("%w: %q; `nodes list` shows those that are there", ErrUnknownNode, strings.ToValidUTF8(name, "\uFFFD"))
}

func nodeView(m roster.Member) NodeView {
	return NodeView{
		ID: m.ID, Name: m.Name, Generation: m.Generation, State: m.State, Jobs: m.Jobs, Owned: m.Owned, Running: m.Running,
		ClockOffset: ms(m.OffsetMS), Trouble: wire.OneLine(m.Trouble), Version: m.Version, Revision: m.Revision, ZoneData: m.ZoneData, Started: timeOf(work.Millis(m.Started)), Seen: timeOf(work.Millis(m.Seen)),
		ConfigRefused: refusedView(m.Refused),
	}
}

func refusedView(r *roster.Refusal) *RefusedView {
	if r == nil {
		return nil
	}
	return &RefusedView{At: timeOf(r.At), Text: wire.OneLine(r.Text)}
}
