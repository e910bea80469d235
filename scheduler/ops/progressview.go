package ops

import (
	"time"

	"context"

	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// ProgressView is the progress of a run in flight, up to a third of its lease time old; see
// jobs.Run.Progress.
type ProgressView struct {
	Done  int64     `json:"done"`
	Total int64     `json:"total"` // 0: not known
	Note  string    `json:"note"`
	At    time.Time `json:"at"` // when the run reported it
	// End is when the run will end if it goes on at the rate since its first report; null when not
	// known.
	End time.Time `json:"end"`
}

func progressView(p ledger.Progress) *ProgressView {
	v := &ProgressView{Done: p.Done, Total: p.Total, Note: p.Note, At: timeOf(p.At)}
	if did, took := p.Done-p.From, p.At-p.Since; did > 0 && took > 0 && p.Total > p.Done {
		v.End = timeOf(p.At + int64(float64(p.Total-p.Done)*float64(took)/float64(did)))
	}
	return v
}

// addProgress adds the progress of started runs, and the causes for which granted runs wait before
// they start.
func addProgress(ctx context.Context, l *ledger.Ledger, runs []inspect.Run, views []RunView) error {
	var going []ledger.Run
	for _, r := range runs {
		if r.Lease != nil && !r.Lease.Pending() && !r.Lease.IsOpenTick {
			going = append(going, *r.Lease)
		}
	}
	if len(going) == 0 {
		return nil
	}
	said, waits, err := l.Progress(ctx, going)
	for k := range views {
		if p, ok := said[views[k].Run]; ok && runs[k].Lease != nil {
			views[k].Progress = progressView(p)
		}
		if w, ok := waits[views[k].Run]; ok && runs[k].Lease != nil && views[k].Reason == "" {
			views[k].Reason = w.Note
		}
	}
	return err
}
