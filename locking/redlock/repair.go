package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// sickness is a master's word that it has lost its state.
type sickness struct {
	runID string
	known time.Duration // for how long that was known when it said so
}

type sickMaster struct {
	master *master
	sickness
}

// hear notes what an answer says of the master's state.
func (d *Driver) hear(m *master, p promise) {
	if p.code != codeAmnesiac {
		m.sick.Store(nil)
		return
	}
	if was := m.sick.Swap(&sickness{p.runID, p.lost}); was == nil || was.runID != p.runID {
		if p.empty {
			d.cfg.Logger.Warn("a redis master is new, or was emptied, and does not vote yet: call redlock.Bootstrap at a first start; else it votes by itself in a while",
				"master", m.addr, "server", p.runID)
			return
		}
		d.cfg.Logger.Warn("a redis master has lost its state, and does not vote until it is repaired", "master", m.addr, "server", p.runID)
	}
}

func (d *Driver) sickMasters() []sickMaster {
	var out []sickMaster
	for _, m := range d.masters {
		if s := m.sick.Load(); s != nil {
			out = append(out, sickMaster{m, *s})
		}
	}
	return out
}

// repairFloor returns a token that is not below any that was granted by now, and
// the longest ttl of all clients: a majority that votes has seen both.
func repairFloor(promises []promise) (floor locking.Token, longest time.Duration) {
	for _, p := range promises {
		floor, longest = max(floor, p.largest), max(longest, p.longest)
	}
	return floor, longest
}

// repairSick lets masters vote again, in the background, after an acquisition
// that succeeded without them. They said that they have lost their state before
// it began, and long enough ago: so all that was under way when they lost it is
// over, and what it left is known to the quorum whose answers came since.
func (d *Driver) repairSick(sick []sickMaster, quorum []promise) {
	floor, longest := repairFloor(quorum)
	for _, s := range sick {
		m := s.master
		if s.known < quarantine(longest) || !m.repair.CompareAndSwap(false, true) {
			continue
		}
		if !m.enter() {
			m.repair.Store(false)
			continue
		}
		d.calls.Go(func() {
			defer m.leave()
			defer m.repair.Store(false)
			ctx, cancel := context.WithTimeout(context.Background(), d.cfg.MasterTimeout)
			defer cancel()
			if err := d.restore(ctx, m, s.runID, floor, quarantine(longest), longest); err != nil {
				d.cfg.Logger.Warn("a redis master could not be repaired; the next acquisition tries again", "master", m.addr, "error", err)
			}
		})
	}
}

// restore lets one master vote, when need has passed since it was first known to
// have lost its state; a negative need is none.
func (d *Driver) restore(ctx context.Context, m *master, runID string, floor locking.Token, need, longest time.Duration) error {
	needMS := int64(-1)
	if need >= 0 {
		needMS = lockredis.Millis(need)
	}
	code, err := repairScript.Run(ctx, m.client, []string{nodeKey(d.cfg.Namespace)}, runID, floor, needMS, lockredis.Millis(longest)).Int()
	switch {
	case err != nil:
		return m.explain("repair", err)
	case code < 0:
		return fmt.Errorf("repair redis %s: %w: what it granted before it lost its state may still be held; try again in %s",
			m.addr, locking.ErrUnreachable, ms(-int64(code)))
	case code != codeYes:
		return fmt.Errorf("repair redis %s: %w: it was restarted meanwhile; try again", m.addr, locking.ErrUnreachable)
	}
	m.sick.Store(nil)
	d.cfg.Logger.Info("a redis master votes", "master", m.addr, "server", runID)
	return nil
}
