package schedtest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/escapement/escapement/scheduler"
)

// judge holds the runs against the schedules: each tick once, or skipped with a true reason, by growing tokens.
func (m *moving) judge() {
	type one struct { // a shard is a lease of its own
		job   string
		shard int
	}
	ran, token, skipped := map[one]map[int64]bool{}, map[one]int64{}, m.skipped()
	granted := map[string]bool{}
	var latest time.Time
	for _, r := range m.runs {
		k, tick := one{r.job, r.shard}, r.tick.Unix()
		if ran[k] == nil {
			ran[k] = map[int64]bool{}
		}
		attempt := fmt.Sprint(k, tick, r.attempt)
		if granted[attempt] || r.attempt > 1 && !ran[k][tick] {
			m.bad("%v %d, attempt %d: granted twice, or without the one before it", k, tick, r.attempt)
		}
		granted[attempt], ran[k][tick] = true, true
		if r.token <= token[k] {
			m.bad("%v %d: token %d after %d", k, tick, r.token, token[k])
		}
		token[k], latest = r.token, r.at
		if r.tick.Before(m.shut) || r.tick.After(m.opened) {
			m.worst = max(m.worst, r.at.Sub(r.tick))
		}
	}
	if len(ran) != 10 || latest.Before(m.opened.Add(10*time.Second)) {
		m.bad("%d jobs and shards ran, want 10; the last run was %s after the new side was open", len(ran), latest.Sub(m.opened))
	}
	for k, ticks := range ran {
		first, last := slices.Min(slices.Collect(maps.Keys(ticks))), slices.Max(slices.Collect(maps.Keys(ticks)))
		for tick := first; tick <= last; tick++ {
			if due := k.job != "job-4" || tick%4 == 0; due && !ticks[tick] && !skipped[k.job][tick] {
				m.bad("%v has not run its tick %d, and no row says why", k, tick)
			}
		}
	}
}

// skipped are the ticks that the ledger has recorded as skipped: because the one before went on while the namespace was
// closed, or because of the job that is followed.
func (m *moving) skipped() map[string]map[int64]bool {
	client := m.to.Client()
	defer client.Close()
	i, err := scheduler.NewInspector(client, "")
	if err != nil {
		m.t.Fatal(err)
	}
	rows, err := i.Runs(context.Background(), scheduler.RunFilter{Outcome: "skipped"})
	if err != nil {
		m.t.Error(err)
	}
	skipped := map[string]map[int64]bool{}
	for _, r := range rows {
		if skipped[r.Job] == nil {
			skipped[r.Job] = map[int64]bool{}
		}
		until := r.Tick
		if r.Until != nil {
			until = r.Until
		}
		for at := time.Time(*r.Tick).Unix(); at <= time.Time(*until).Unix(); at++ {
			skipped[r.Job][at] = true
		}
	}
	return skipped
}

// books wants the chains of the new side to close.
func (m *moving) books() {
	client := m.to.Client()
	defer client.Close()
	i, err := scheduler.NewInspector(client, "")
	if err != nil {
		m.t.Fatal(err)
	}
	wrong, err := i.Verify(context.Background(), "")
	if err != nil {
		m.t.Error(err)
	}
	for _, w := range wrong {
		m.t.Errorf("%s: %s", w.Job, w.What)
	}
}
