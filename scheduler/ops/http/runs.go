package opshttp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// waitMost bounds how long a request waits for the end of a run.
const waitMost = 8 * time.Second

func (s *Server) runs(c call) (any, error) {
	q := c.query()
	f := ops.RunFilter{
		Job: q.text("job"), Since: q.time("since"), Outcome: q.text("outcome"), After: q.text("after"), Limit: q.number("limit", listSize, 1, listMax),
	}
	if f.Outcome != "" && f.Outcome != ops.OutcomePending && new(jobs.Outcome).UnmarshalText([]byte(f.Outcome)) != nil {
		q.bad("outcome is %q; it must be pending, or an outcome such as failed", f.Outcome)
	}
	if err := q.end(); err != nil {
		return nil, err
	}
	list, err := c.client.ListRuns(c.Context(), f)
	return listed(list.Runs, list.Next), errors.Join(err, rowsLeftAlone(list.UnknownFormat))
}

// rowsLeftAlone is the note about rows that this version cannot read; nil for none.
func rowsLeftAlone(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d rows are left alone: %w", n, ops.ErrUnknownFormat)
}

// run answers a run; with wait_ms, when it has ended or that time is over.
func (s *Server) run(c call) (any, error) {
	q := c.query()
	wait := time.Duration(q.number("wait_ms", 0, 0, int(waitMost.Milliseconds()))) * time.Millisecond
	if err := q.end(); err != nil {
		return nil, err
	}
	id := c.PathValue("run")
	if wait == 0 {
		return valid(c.client.GetRun(c.Context(), id))
	}
	end, err := s.waits.begin(s.callerOf(c.Request))
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(c.Context(), wait)
	defer cancel()
	v, err := s.waitRun(ctx, c.client, id)
	if err != nil && ctx.Err() != nil && c.Context().Err() == nil {
		if v.Run != "" {
			id = v.Run // it may have been handed back
		}
		return valid(c.client.GetRun(c.Context(), id))
	}
	return valid(v, err)
}

// text is an answer that is no JSON.
type text string

func (s *Server) output(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	v, err := c.client.GetRun(c.Context(), c.PathValue("run"))
	if err != nil && !errors.As(err, new(*ops.UnreachableError)) {
		return nil, err
	}
	return text(v.Output), nil
}

// Cancelled says what a request to cancel did: told or recorded.
type Cancelled struct {
	Did ops.Cancellation `json:"did"`
}

func (s *Server) cancel(c call) (any, error) {
	var in Reason
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	did, err := c.client.Cancel(c.Context(), c.PathValue("run"), ops.CancelOptions{Reason: in.Reason})
	return Cancelled{did}, err
}

func (s *Server) rerun(c call) (any, error) {
	var in Reason
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	id, err := c.because(in.Reason).Rerun(c.Context(), c.PathValue("run"))
	return Asked{id}, err
}
