package opshttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

// Pages have listSize items unless more are asked for, and listMax at most.
const (
	listSize = 100
	listMax  = 1000
)

// Me says who asks.
type Me struct {
	Name string `json:"name"`
	Role string `json:"role"`
	// Open says that nobody needs to prove who it is: everybody is an operator.
	Open    bool   `json:"open"`
	Node    string `json:"node"`    // which node answers
	Version string `json:"version"` // of its program
}

func (s *Server) me(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	return Me{c.who.Name, c.who.Role.String(), s.cfg.Access.Open(), s.cfg.Node, s.cfg.Version}, nil
}

// Namespace says where the namespace is.
type Namespace struct {
	Name string    `json:"name"`
	Now  ops.Stamp `json:"now"` // Redis' time, by which ticks are due
	// Closed says that a move has closed the namespace here, and where it is; "" when none has.
	Closed string `json:"closed"`
}

func (s *Server) namespace(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	closed, err := c.client.Closed(c.Context())
	if err != nil {
		return nil, err
	}
	now, err := c.client.Now(c.Context())
	return Namespace{c.client.Namespace(), ops.Stamp(now), closed}, err
}

func (s *Server) jobs(c call) (any, error) {
	q := c.query()
	f := ops.JobFilter{After: q.text("after"), Limit: q.number("limit", listSize, 1, listMax), Match: q.text("q")}
	if err := q.end(); err != nil {
		return nil, err
	}
	list, err := c.client.ListJobs(c.Context(), f)
	return listed(list.Jobs, list.Next), err
}

func (s *Server) jobNames(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	all, err := c.client.JobNames(c.Context())
	return listed(all, ""), err
}

func (s *Server) graph(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	all, err := c.client.Graph(c.Context())
	return listed(all, ""), err
}

// some is a list that is never null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (s *Server) job(c call) (any, error) {
	if err := c.query().end(); err != nil {
		return nil, err
	}
	return valid(c.client.GetJob(c.Context(), c.PathValue("name")))
}

// valid is a value that an UnreachableError stands beside, which then says no more than the value.
func valid[T any](value T, err error) (any, error) {
	if errors.As(err, new(*ops.UnreachableError)) {
		return value, nil
	}
	return value, err
}

func (s *Server) removeJob(c call) (any, error) {
	q := c.query()
	was := q.time("was")
	if err := q.end(); err != nil {
		return nil, err
	}
	name := c.PathValue("name")
	stored, err := c.client.StoredJobs(c.Context(), name)
	if len(stored) == 0 && errors.Is(err, ops.ErrUnknownJob) {
		return nil, c.client.Remove(c.Context(), name)
	}
	return nil, c.client.DeleteJob(c.Context(), name, was)
}

func (s *Server) putJob(c call) (any, error) {
	q := c.query()
	o := ops.PutOptions{New: q.flag("new"), Was: q.time("was"), DryRun: q.flag("dry_run")}
	if err := q.end(); err != nil {
		return nil, err
	}
	text := json.RawMessage("{}")
	if err := c.read(&text); err != nil {
		return nil, err
	}
	var in ops.StoredJob
	unread := in.UnmarshalJSON(text)
	name := c.PathValue("name")
	if in.Name != "" && in.Name != name {
		return nil, badRequest{fmt.Sprintf("the body names the job %q, and the path %q", in.Name, name)}
	}
	in.Name = name
	if unread != nil {
		o.DryRun = true // for what else is wrong
		_, refused := c.client.PutJob(c.Context(), in.Job, o)
		return nil, badFields{errors.Join(unread, besideUnread(ops.FaultsOf(unread), ops.FaultsOf(refused)))}
	}
	return c.client.PutJob(c.Context(), in.Job, o)
}

// besideUnread are the faults of a job of which some settings could not be read. A fault at such a setting, or whose words have its name,
// may be about the value that is not there, and is left out.
func besideUnread(unread, found []ops.FaultView) error {
	var faults []error
	for _, f := range found {
		moot := slices.ContainsFunc(unread, func(u ops.FaultView) bool {
			setting, _, _ := strings.Cut(u.Field, "[")
			_, known := spec.Named(setting)
			part := strings.HasPrefix(f.Field, setting+".") || strings.HasPrefix(f.Field, setting+"[")
			return u.Field == "job" || f.Field == setting || part || known && strings.Contains(f.Text, setting)
		})
		if !moot {
			faults = append(faults, &jobs.FieldError{Field: f.Field, Msg: f.Text})
		}
	}
	return errors.Join(faults...)
}

func (s *Server) storedJobs(c call) (any, error) {
	q := c.query()
	names := q.texts("name")
	if err := q.end(); err != nil {
		return nil, err
	}
	stored, err := c.client.StoredJobs(c.Context(), names...)
	return listed(stored, ""), err
}

func (s *Server) ticks(c call) (any, error) {
	q := c.query()
	from, n := q.time("from"), q.number("limit", 20, 1, listMax)
	if err := q.end(); err != nil {
		return nil, err
	}
	ticks, err := c.client.ListTicks(c.Context(), c.PathValue("name"), from, n)
	return listed(ticks, ""), err
}

// TriggerRequest asks for a run.
type TriggerRequest struct {
	Payload json.RawMessage `json:"payload,omitempty"` // JSON, 64 KiB at most
	At      *ops.Stamp      `json:"at,omitempty"`      // default: now
	Unique  string          `json:"unique,omitempty"`  // a request with the same key is the same run; the header Idempotency-Key is the same
}

// Asked names the run that a request asked for.
type Asked struct {
	Run string `json:"run"`
}

func (s *Server) trigger(c call) (any, error) {
	var in TriggerRequest
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	if key := c.Header.Get("Idempotency-Key"); in.Unique == "" {
		in.Unique = key
	}
	id, err := c.client.Trigger(c.Context(), c.PathValue("name"), ops.TriggerOptions{Payload: in.Payload, At: timeOf(in.At), Unique: in.Unique})
	return Asked{id}, err
}

// readOnly reads the body of a call without parameters.
func (c call) readOnly(into any) error {
	if err := c.query().end(); err != nil {
		return err
	}
	return c.read(into)
}

func timeOf(s *ops.Stamp) time.Time {
	if s == nil {
		return time.Time{}
	}
	return time.Time(*s)
}

// PauseRequest asks for a pause.
type PauseRequest struct {
	Reason string     `json:"reason"`
	Until  *ops.Stamp `json:"until,omitempty"` // default: until it is resumed
}

func (s *Server) pause(c call) (any, error) {
	var in PauseRequest
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	return nil, c.client.Pause(c.Context(), c.PathValue("name"), ops.PauseOptions{Reason: in.Reason, Until: timeOf(in.Until)})
}

// Reason is the body of an action that takes no more than that.
type Reason struct {
	Reason string `json:"reason,omitempty"`
}

// because is the client of somebody who has said why.
func (c call) because(reason string) *ops.Client {
	if reason == "" {
		return c.client
	}
	return c.client.As(ops.Actor{Name: c.who.Name, Via: viaOf(c.Request), Reason: reason})
}

func (s *Server) resume(c call) (any, error) {
	var in Reason
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	return nil, c.because(in.Reason).Resume(c.Context(), c.PathValue("name"))
}

// RewindRequest says where to go back to.
type RewindRequest struct {
	To     *ops.Stamp `json:"to"`
	Reason string     `json:"reason,omitempty"`
}

// Rewound says with which tick a job begins again.
type Rewound struct {
	Tick ops.Stamp `json:"tick"`
}

func (s *Server) rewind(c call) (any, error) {
	var in RewindRequest
	if err := c.readOnly(&in); err != nil {
		return nil, err
	}
	if in.To == nil {
		return nil, badRequest{"to is missing: the instant to go back to"}
	}
	tick, err := c.because(in.Reason).Rewind(c.Context(), c.PathValue("name"), timeOf(in.To))
	return Rewound{ops.Stamp(tick)}, err
}
