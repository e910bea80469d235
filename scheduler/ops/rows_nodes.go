package ops

import (
	"context"
	"slices"
)

type matchIn struct {
	Match string `query:"q"` // a part of the name, in any case of letters
}

var rowNodes = &Operation[matchIn, []NodeView]{
	Info: Info{Method: "GET", Path: "nodes", Role: Viewer, Summary: "the nodes by name"},
	do: func(ctx context.Context, c *conn, in matchIn) ([]NodeView, error) {
		all, err := listNodes(ctx, c)
		return slices.DeleteFunc(all, func(n NodeView) bool { return !matches(n.Name, in.Match) }), err
	},
}

// ListNodes lists the nodes in the roster by name, recently departed nodes too. Jobs of unreachable
// partitions do not count as superseded or on standby. Records in an unknown format are counted in
// an error that wraps ErrUnknownFormat and comes with the other nodes.
func (c *Client) ListNodes(ctx context.Context) ([]NodeView, error) {
	return call(ctx, c, rowNodes, matchIn{})
}

var rowDrains = read("drains", "the drained names of nodes", plain(listDrains))

// Drains lists the drained names, also names without a node at present.
func (c *Client) Drains(ctx context.Context) (map[string]DrainView, error) {
	return call(ctx, c, rowDrains, None{})
}

type drainIn struct {
	Named
	DrainOptions
}

var rowDrain = &Operation[drainIn, None]{
	Info: Info{Method: "POST", Path: "nodes/{name}/drain", Role: Operator, Audit: "nodes drain", Summary: "let the nodes of a name claim nothing new"},
	do: func(ctx context.Context, c *conn, in drainIn) (None, error) {
		return done(drainNode(ctx, c, in.Name, in.DrainOptions))
	},
	note: func(in drainIn, _ None) Action {
		return Action{Target: in.Name, Author: in.Author, Reason: in.Reason}
	},
}

// DrainNode drains the nodes of a name until ResumeNode: they claim nothing new, hand over the jobs
// that they own within three seconds, finish their runs, and stay in the roster as draining. The
// drain belongs to the name, so a process that starts with that name drains too. A repeated call
// replaces the author and the reason. DrainNode does not wait; use NodeIdle. It returns
// ErrUnknownNode unless a node of that name is in the roster or the name is drained, and ErrRefused
// when too many names are drained and for a text that is not UTF-8.
func (c *Client) DrainNode(ctx context.Context, name string, o DrainOptions) error {
	_, err := call(ctx, c, rowDrain, drainIn{Named{name}, o})
	return err
}

var rowResumeNode = &Operation[Why, None]{
	Info: Info{Method: "POST", Path: "nodes/{name}/resume", Role: Operator, Audit: "nodes resume", Summary: "end the drain of a name"},
	do:   func(ctx context.Context, c *conn, in Why) (None, error) { return done(resumeNode(ctx, c, in.Name)) },
	note: func(in Why, _ None) Action { return Action{Target: in.Name, Reason: in.Reason} },
}

// ResumeNode ends the drain of a name; its nodes claim again after their next heartbeat. It changes
// nothing if the name is not drained. It returns ErrUnknownNode for a name that is neither drained
// nor in the roster.
func (c *Client) ResumeNode(ctx context.Context, name string) error {
	_, err := call(ctx, c, rowResumeNode, Why{Named: Named{name}})
	return err
}

// Rests is whether the nodes of a name run nothing, and will run nothing until they are resumed.
type Rests struct {
	Rests bool `json:"rests"`
}

var rowIdle = &Operation[Named, Rests]{
	Info: Info{Method: "GET", Path: "nodes/{name}/rests", Role: Viewer, Summary: "whether the nodes of a drained name run nothing any more"},
	do: func(ctx context.Context, c *conn, in Named) (r Rests, err error) {
		r.Rests, err = nodeIdle(ctx, c, in.Name)
		return r, err
	},
}

// NodeIdle reports whether the nodes of a name run nothing, and will run nothing until they are
// resumed. Nodes that are gone are idle when the ledger has no run of theirs.
func (c *Client) NodeIdle(ctx context.Context, name string) (bool, error) {
	r, err := call(ctx, c, rowIdle, Named{name})
	return r.Rests, err
}
