package opshttp

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/escapement/escapement/scheduler/ops"
)

func (s *Server) nodes(c call) (any, error) {
	part, err := c.part()
	if err != nil {
		return nil, err
	}
	all, err := c.client.ListNodes(c.Context())
	return listed(matching(all, part, func(n ops.NodeView) string { return n.Name }), ""), err
}

// part is the part of a name that a list is asked for, "" for all.
func (c call) part() (string, error) {
	q := c.query()
	part := q.text("q")
	return part, q.end()
}

// matching are the items with a part in their names, in any case of letters.
func matching[T any](all []T, part string, name func(T) string) []T {
	part = strings.ToLower(part)
	return slices.DeleteFunc(all, func(v T) bool { return !strings.Contains(strings.ToLower(name(v)), part) })
}

func (s *Server) drains(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	return valid(c.client.Drains(c.Context()))
}

func (s *Server) drain(c call) (any, error) {
	var in Reason
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	return nil, c.client.DrainNode(c.Context(), c.PathValue("name"), ops.DrainOptions{Reason: in.Reason})
}

func (s *Server) undrain(c call) (any, error) {
	var in Reason
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	return nil, c.because(in.Reason).ResumeNode(c.Context(), c.PathValue("name"))
}

// Rests says whether the nodes of a name run nothing, and will run nothing until they are resumed.
type Rests struct {
	Rests bool `json:"rests"`
}

func (s *Server) rests(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	yes, err := c.client.NodeIdle(c.Context(), c.PathValue("name"))
	return Rests{yes}, err
}

func (s *Server) locks(c call) (any, error) {
	q := c.query()
	f := ops.LockFilter{Match: q.text("q"), After: q.text("after"), Limit: q.number("limit", listSize, 1, listMax)}
	if err := q.end(); err != nil {
		return nil, err
	}
	list, err := c.client.ListLocks(c.Context(), f)
	return listed(list.Locks, list.Next), err
}

func (s *Server) lock(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	v, err := c.client.GetLock(c.Context(), c.PathValue("name"))
	if v.Name == "" {
		return nil, err
	}
	return valid(v, err)
}

// ReleaseRequest names the grant that is to end.
type ReleaseRequest struct {
	Token  string `json:"token"`
	Force  bool   `json:"force,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// ReleaseAnswer says what was released, and how: told, cancelled, taken or lapses, as scheduler.Released has them.
type ReleaseAnswer struct {
	Lock ops.LockView `json:"lock"`
	Did  ops.Released `json:"did"`
}

func (s *Server) release(c call) (any, error) {
	var in ReleaseRequest
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	token, err := strconv.ParseInt(in.Token, 10, 64)
	if err != nil || token <= 0 {
		return nil, badRequest{"token is " + strconv.Quote(in.Token) + "; it must be the number of the grant that is to end, as a string"}
	}
	o := ops.ReleaseOptions{Force: in.Force, Reason: in.Reason, Holder: "released over the API by " + c.who.Name}
	r, err := c.client.ReleaseLock(c.Context(), c.PathValue("name"), token, o)
	return ReleaseAnswer{r.Lock, r.Did}, err
}

func (s *Server) generations(c call) (any, error) {
	part, err := c.part()
	if err != nil {
		return nil, err
	}
	all, err := c.client.ListGenerations(c.Context())
	return listed(matching(all, part, func(g ops.GenerationView) string { return g.Name }), ""), err
}

// PromoteRequest says which jobs of a generation are promoted, and how.
type PromoteRequest struct {
	Job           string `json:"job,omitempty"` // a pattern of names; default: all jobs
	CancelRunning bool   `json:"cancel_running,omitempty"`
	Force         bool   `json:"force,omitempty"`
	Reason        string `json:"reason,omitempty"`
}

// unnamed is the generation without a name in a path.
const unnamed = "-"

func (s *Server) promote(c call) (any, error) {
	var in PromoteRequest
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	name := c.PathValue("name")
	if name == unnamed {
		name = ""
	}
	return c.because(in.Reason).Promote(c.Context(), name, ops.PromoteOptions{Pattern: in.Job, CancelRunning: in.CancelRunning, Force: in.Force})
}

// Verified is what a check of the recorded history has found.
type Verified struct {
	Violations []ops.Violation     `json:"violations"`
	LeftAlone  []ops.UnknownFormat `json:"left_alone"`
	Unverified []string            `json:"unverified"`
	Overdue    []ops.Overdue       `json:"overdue"`
	Checked    Checked             `json:"checked"`
}

// Checked is how many jobs and rows were checked, and how many ticks were computed again.
type Checked struct {
	Jobs  int64 `json:"jobs"`
	Rows  int64 `json:"rows"`
	Ticks int64 `json:"ticks"`
}

// VerifiedOf is the JSON form of what Examine has found.
func VerifiedOf(x ops.Verification) Verified {
	return Verified{some(x.Violations), some(x.UnknownFormat), some(x.Unverified), some(x.Overdue), Checked{x.Jobs, x.Rows, x.Ticks}}
}

func (s *Server) verify(c call) (any, error) {
	q := c.query()
	f := ops.VerifyFilter{Job: q.text("job"), Since: q.time("since")}
	if err := q.end(); err != nil {
		return nil, err
	}
	x, err := c.client.Verify(c.Context(), f)
	return VerifiedOf(x), err
}

func (s *Server) problems(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	all, err := c.client.Problems(c.Context())
	return listed(all, ""), err
}

func (s *Server) audit(c call) (any, error) {
	q := c.query()
	f := ops.ActionFilter{Since: q.time("since"), Who: q.text("who"), After: q.text("after"), Limit: q.number("limit", listSize, 1, listMax)}
	if err := q.end(); err != nil {
		return nil, err
	}
	list, err := c.client.Audit(c.Context(), f)
	return listed(list.Actions, list.Next), errors.Join(err, rowsLeftAlone(list.UnknownFormat))
}
