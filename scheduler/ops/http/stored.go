package opshttp

import (
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// previewTicks is how many ticks a preview has unless more are asked for.
const previewTicks = 10

func (s *Server) handlers(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	all, err := c.client.ListHandlers(c.Context())
	return listed(all, ""), err
}

func (s *Server) preview(c call) (any, error) {
	q := c.query()
	j := jobs.Job{
		Name: q.text("name"), Schedule: q.text("schedule"), TimeZone: q.text("time_zone"), Except: q.texts("except"), Only: q.texts("only"),
		StartAt: q.time("start_at"), EndAt: q.time("end_at"), Jitter: q.duration("jitter"),
	}
	n := q.number("limit", previewTicks, 1, ops.PreviewMost)
	if err := q.end(); err != nil {
		return nil, err
	}
	return c.client.Preview(c.Context(), j, n)
}
