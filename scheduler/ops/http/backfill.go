package opshttp

import (
	"context"
	"net/http"

	"github.com/escapement/escapement/scheduler/ops"
)

// BackfillRequest asks for a backfill.
type BackfillRequest struct {
	From     *ops.Stamp `json:"from"`
	To       *ops.Stamp `json:"to"`
	Parallel int        `json:"parallel,omitempty"` // 1 to 100; default: 1
	DryRun   bool       `json:"dry_run,omitempty"`  // count the ticks, and begin nothing
	Reason   string     `json:"reason,omitempty"`
}

func (s *Server) backfill(c call) (any, error) {
	var in BackfillRequest
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	if in.From == nil || in.To == nil {
		return nil, badRequest{"from or to is missing: both ends of the range are needed"}
	}
	o := ops.BackfillOptions{From: timeOf(in.From), To: timeOf(in.To), Parallel: in.Parallel, DryRun: in.DryRun}
	return c.because(in.Reason).Backfill(c.Context(), c.PathValue("name"), o)
}

func (s *Server) backfills(c call) (any, error) {
	q := c.query()
	job := q.text("job")
	if err := q.end(); err != nil {
		return nil, err
	}
	all, err := c.client.ListBackfills(c.Context(), job)
	return listed(all, ""), err
}

func (s *Server) cancelBackfill(c call) (any, error) {
	q := c.query()
	reason := q.text("reason")
	if err := q.end(); err != nil {
		return nil, err
	}
	return c.client.CancelBackfill(c.Context(), c.PathValue("name"), ops.CancelOptions{Reason: reason})
}

// Backfill is as ops.Client has it.
func (c *Client) Backfill(ctx context.Context, name string, o ops.BackfillOptions) (plan ops.BackfillPlan, err error) {
	in := BackfillRequest{From: stampOf(o.From), To: stampOf(o.To), Parallel: o.Parallel, DryRun: o.DryRun}
	_, err = c.do(ctx, http.MethodPost, "jobs/"+seg(name)+"/backfill", nil, in, &plan)
	return plan, err
}

// Backfills is as ops.Client has it.
func (c *Client) ListBackfills(ctx context.Context, name string) (all []ops.BackfillView, err error) {
	_, err = c.do(ctx, http.MethodGet, "backfills", parameters("job", name), nil, &all)
	return all, err
}

// CancelBackfill is as ops.Client has it. The author is who the server takes the client for.
func (c *Client) CancelBackfill(ctx context.Context, name string, o ops.CancelOptions) (v ops.BackfillView, err error) {
	_, err = c.do(ctx, http.MethodDelete, "jobs/"+seg(name)+"/backfill", parameters("reason", o.Reason), nil, &v)
	return v, err
}
