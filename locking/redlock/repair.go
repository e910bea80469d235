package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// lostState is a master's answer that it has lost its state.
type lostState struct {
	runID string
	known time.Duration // how long the loss was known at the answer
}

type lostMaster struct {
	master *master
	lostState
}

// noteState records from an answer whether the master has its state.
func (d *driver) noteState(m *master, p promise) {
	if p.code != codeLostState {
		m.lost.Store(nil)
		return
	}
	if was := m.lost.Swap(&lostState{p.runID, p.lost}); was == nil || was.runID != p.runID {
		if p.empty {
			d.cfg.Logger.Warn("a redis master is new, or was emptied, and does not vote yet; call redlock.Bootstrap at a first start, else it votes later by itself",
				"master", m.addr, "server", p.runID)
			return
		}
		d.cfg.Logger.Warn("a redis master has lost its state, and does not vote yet; it votes later by itself", "master", m.addr, "server", p.runID)
	}
}

func (d *driver) lostMasters() []lostMaster {
	var out []lostMaster
	for _, m := range d.masters {
		if s := m.lost.Load(); s != nil {
			out = append(out, lostMaster{m, *s})
		}
	}
	return out
}

// repairFloor returns a token at least as large as all granted ones, and the longest ttl of any client. A voting
// majority has seen both.
func repairFloor(promises []promise) (floor locking.Token, longest time.Duration) {
	for _, p := range promises {
		floor, longest = max(floor, p.largest), max(longest, p.longest)
	}
	return floor, longest
}

// repairLost lets masters vote again, in the background, after an acquisition that succeeded without them. Their
// loss was known before the acquisition, for long enough. So all calls from before the loss are over, and the
// quorum, which answered since, knows their tokens.
func (d *driver) repairLost(lost []lostMaster, quorum []promise) {
	floor, longest := repairFloor(quorum)
	for _, s := range lost {
		m := s.master
		if s.known < quarantine(longest) || !m.repair.CompareAndSwap(false, true) {
			continue
		}
		if !m.enter() {
			m.repair.Store(false)
			continue
		}
		d.calls.start(func() {
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

// restore lets one master vote, if its loss has been known for need. A negative need: at once.
func (d *driver) restore(ctx context.Context, m *master, runID string, floor locking.Token, need, longest time.Duration) error {
	needMS := int64(-1)
	if need >= 0 {
		needMS = lockredis.Millis(need)
	}
	code, err := repairScript.Run(ctx, m.client, []string{nodeKey(d.cfg.Namespace)}, runID, floor, needMS, lockredis.Millis(longest)).Int()
	switch {
	case err != nil:
		return m.explain("repair", err)
	case code < 0:
		return fmt.Errorf("repair redis %s: %w: locks from before its loss may still be held; try again in %s",
			m.addr, locking.ErrUnreachable, ms(-int64(code)))
	case code != codeYes:
		return fmt.Errorf("repair redis %s: %w: it was restarted meanwhile; try again", m.addr, locking.ErrUnreachable)
	}
	m.lost.Store(nil)
	d.cfg.Logger.Info("a redis master votes", "master", m.addr, "server", runID)
	return nil
}
