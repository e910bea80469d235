package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// DrainOptions say who drains a node and why; the zero value is useful.
type DrainOptions struct {
	// Author is who drains it; at most 64 bytes are kept. Default "unknown".
	Author string
	// Reason is for whoever finds the node drained; at most 256 bytes are kept. Default none.
	Reason string
}

// DrainNode drains the nodes of a name, as `nodes list` has it, until ResumeNode: they claim nothing new,
// hand over what they own within three seconds, finish what runs, and stay in the roster as draining. It
// concerns the name: a process that is started anew under it drains too. Drained again, a name takes the new
// author and reason. It does not wait; NodeRests does. It returns ErrUnknownNode unless a node of
// that name is in the roster or the name is drained, and ErrRefused when too many names are.
func (i *Inspector) DrainNode(ctx context.Context, name string, o DrainOptions) error {
	_, members, err := i.members(ctx)
	if err != nil {
		return err
	}
	drains, err := i.Drains(ctx)
	if err != nil {
		return err
	}
	if _, drained := drains[name]; !drained && !named(members, name) {
		return unknownNode(name)
	}
	err = i.roster().Drain(ctx, name, sharding.Drained{Author: author(o.Author), Reason: oneLine(o.Reason)})
	if errors.Is(err, sharding.ErrTooManyDrains) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return redisconn.Explain("drain node", err)
}

// ResumeNode ends the drain of a name: its nodes work again with their next beat. Of a node that is not
// drained it changes nothing. It returns ErrUnknownNode for a name that is neither drained nor in the roster.
func (i *Inspector) ResumeNode(ctx context.Context, name string) error {
	_, members, err := i.members(ctx)
	if err != nil {
		return err
	}
	resumed, err := i.roster().Resume(ctx, name)
	if err != nil {
		return redisconn.Explain("resume node", err)
	}
	if !resumed && !named(members, name) {
		return unknownNode(name)
	}
	return nil
}

// NodeRests says whether nothing runs on the nodes of a name and nothing will until they are resumed. A node
// that is gone, or was never there, rests when the ledger has no run of it in flight any more.
func (i *Inspector) NodeRests(ctx context.Context, name string) (bool, error) {
	l, members, err := i.members(ctx)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(members, func(m sharding.Member) bool {
		v := nodeView(m)
		return v.Name == name && v.State != sharding.StateGone && (v.State != sharding.StateDraining || v.Owned > 0 || v.Running > 0)
	}) {
		return false, nil
	}
	all, err := l.Jobs(ctx)
	if err != nil {
		return false, err
	}
	open, err := l.Open(ctx, namesOf(all)...)
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

// Drains are the drained names, those among them that no node has at present too.
func (i *Inspector) Drains(ctx context.Context) (map[string]DrainView, error) {
	drains, err := i.roster().Drains(ctx)
	if err != nil {
		err = redisconn.Explain("read the drains", err)
		redisconn.LookAgain(ctx, i.client, err)
		return nil, err
	}
	views := make(map[string]DrainView, len(drains))
	for name, d := range drains {
		views[name] = DrainView{Since: stampOf(work.Millis(d.Since)), Author: d.Author, Reason: d.Reason}
	}
	return views, nil
}

func unknownNode(name string) error {
	return fmt.Errorf("%w: %q; `nodes list` shows those that are there", ErrUnknownNode, strings.ToValidUTF8(name, "\uFFFD"))
}
