package ops

import (
	"time"

	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/work"
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

func listNodes(ctx context.Context, c *conn) ([]NodeView, error) {
	l, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	seen, err := c.roster().Look(ctx)
	if err != nil {
		return nil, redisconn.Explain(c.client, c.namespace, redisconn.Classify("list nodes", err))
	}
	members := seen.Members
	idle, err := inspect.IdleJobs(ctx, l, c.roster())
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

// members reads the roster of an existing namespace.
func readMembers(ctx context.Context, c *conn) (*ledger.Ledger, []roster.Member, error) {
	l, err := c.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	members, err := c.roster().Members(ctx)
	return l, members, redisconn.Classify("list nodes", err)
}

func named(members []roster.Member, name string) bool {
	return slices.ContainsFunc(members, func(m roster.Member) bool { return m.Name == name })
}

// DrainOptions are who drains a node, and why. The zero value is useful.
type DrainOptions struct {
	// Author is who drains it; at most 64 bytes are kept. Default "unknown".
	Author string
	// Reason is for people who find the node drained; at most 256 bytes are kept. Default none.
	Reason string `json:"reason,omitempty"`
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
	if _, drained := drains[name]; !drained && !named(members, name) {
		return unknownNode(name)
	}
	err = c.roster().Drain(ctx, name, roster.Drained{Author: author(o.Author), Reason: oneLine(o.Reason)})
	if errors.Is(err, roster.ErrTooManyDrains) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return redisconn.Classify("drain node", err)
}

func resumeNode(ctx context.Context, c *conn, name string) (err error) {
	_, members, err := readMembers(ctx, c)
	if err != nil {
		return err
	}
	resumed, err := c.roster().Resume(ctx, name)
	if err != nil {
		return redisconn.Classify("resume node", err)
	}
	if !resumed && !named(members, name) {
		return unknownNode(name)
	}
	return nil
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
	_, parts, err := l.Count(ctx)
	if err != nil {
		return false, err
	}
	open, err := l.InFlightIn(ctx, parts)
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

func listDrains(ctx context.Context, c *conn) (map[string]DrainView, error) {
	drains, err := c.roster().Drains(ctx)
	if err != nil {
		err = redisconn.Classify("read the drains", err)
		redisconn.Refresh(ctx, c.client, err)
		return nil, err
	}
	views := make(map[string]DrainView, len(drains))
	for name, d := range drains {
		views[name] = DrainView{Since: timeOf(work.Millis(d.Since)), Author: d.Author, Reason: d.Reason}
	}
	return views, nil
}

func unknownNode(name string) error {
	return fmt.Errorf("%w: %q; `nodes list` shows those that are there", ErrUnknownNode, strings.ToValidUTF8(name, "\uFFFD"))
}

func nodeView(m roster.Member) NodeView {
	return NodeView{
		ID: m.ID, Name: m.Name, Generation: m.Generation, State: m.State, Jobs: m.Jobs, Owned: m.Owned, Running: m.Running,
		ClockOffset: ms(m.OffsetMS), Trouble: oneLine(m.Trouble), Version: m.Version, Revision: m.Revision, ZoneData: m.ZoneData, Started: timeOf(work.Millis(m.Started)), Seen: timeOf(work.Millis(m.Seen)),
		ConfigRefused: refusedView(m.Refused),
	}
}

func refusedView(r *roster.Refusal) *RefusedView {
	if r == nil {
		return nil
	}
	return &RefusedView{At: timeOf(r.At), Text: oneLine(r.Text)}
}
