package ops

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/ops/internal/generations"
)

// The states of a GenerationView.
const (
	// GenerationActive is the generation that creates new jobs: the first in the namespace, or the
	// last that was promoted for all jobs.
	GenerationActive = "active"
	// GenerationStandby is any other. It may still run jobs that were promoted by pattern.
	GenerationStandby = "standby"
	// GenerationPromoting is a generation whose promotion is under way or interrupted.
	GenerationPromoting = "promoting"
)

// GenerationView is a generation, and the changes that its promotion would make.
type GenerationView struct {
	Name  string `json:"name"`
	State string `json:"state"`
	// Nodes are the names of its living nodes, draining ones included.
	Nodes Names `json:"nodes"`
	// Jobs is how many jobs it has, in the definitions that its living nodes hold or, without such
	// nodes, that are stored for it. Running is how many jobs it runs now; jobs that none of its
	// nodes has do not count.
	Jobs    int `json:"jobs"`
	Running int `json:"running"`
	// Promotion is the promotion under way, while State is promoting.
	Promotion *PromotionView `json:"promotion,omitempty"`
	// Added are jobs that it has and that no generation runs now. Removed are jobs that it does not
	// have. These and the following fields compare it with the active definitions of all
	// generations.
	Added   Names `json:"added"`
	Removed Names `json:"removed"`
	// Unsettled are jobs that its living nodes have and whose definitions are not stored yet,
	// because the nodes have just started.
	Unsettled Names `json:"unsettled"`
	// Schedules are jobs that would run at other times, Settings those in which something else
	// would change. Changed counts both; the lists have the first 20.
	Changed   ChangeCounts     `json:"changed"`
	Schedules []ScheduleChange `json:"schedules"`
	Settings  []SettingsChange `json:"settings"`
}

// ChangeCounts is how many jobs have each kind of change.
type ChangeCounts struct {
	Schedules int `json:"schedules"`
	Settings  int `json:"settings"`
}

// PromotionView is a promotion that has begun and not ended.
type PromotionView struct {
	Epoch         int64  `json:"epoch"`
	Pattern       string `json:"pattern"`
	CancelRunning bool   `json:"cancel_running"`
}

// ScheduleChange is a job that would run at other times.
type ScheduleChange struct {
	Job string       `json:"job"`
	Now ScheduleView `json:"now"`
	New ScheduleView `json:"new"`
	// OnlyNow and OnlyNew are the instants of the next 24 hours that only one of the schedules has:
	// the first 5 of each.
	OnlyNow []time.Time `json:"only_now"`
	OnlyNew []time.Time `json:"only_new"`
}

// ScheduleView is when a job runs.
type ScheduleView struct {
	Schedule string `json:"schedule"`
	TimeZone string `json:"time_zone"`
	After    string `json:"after"` // the jobs that it follows, with commas; such a job has no schedule
	Ticks    int    `json:"ticks"` // in the next 24 hours
}

// SettingsChange is a job of which settings other than the schedule would change.
type SettingsChange struct {
	Job    string   `json:"job"`
	Fields []string `json:"fields"` // by their names: ttl, retry.max, ...
}

// instantsMost bounds the instants of a ScheduleChange, for each schedule.
const instantsMost = 5

var rowGenerations = row(&Operation[matchIn, []GenerationView]{
	Info: Info{Method: "GET", Path: "generations", Role: Viewer, Summary: "the generations, and what promoting each would change"},
	do: func(ctx context.Context, c *conn, in matchIn) ([]GenerationView, error) {
		all, err := listGenerations(ctx, c)
		return slices.DeleteFunc(all, func(g GenerationView) bool { return !matches(g.Name, in.Match) }), err
	},
})

// ListGenerations lists the generations of the namespace by name: each with living nodes, jobs, or
// stored definitions. Each is compared with the active definitions. It returns ErrUnknownNamespace.
func (c *Client) ListGenerations(ctx context.Context) ([]GenerationView, error) {
	return call(ctx, c, rowGenerations, matchIn{})
}

func listGenerations(ctx context.Context, c *conn) ([]GenerationView, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	k, err := generations.Read(ctx, l, c.Roster())
	if err != nil {
		return nil, err
	}
	now, err := l.Now(ctx)
	if err != nil {
		return nil, err
	}
	var views []GenerationView
	for _, name := range k.Names() {
		views = append(views, generationView(k, name, now))
	}
	return views, nil
}

func generationView(k *generations.Known, name string, now time.Time) GenerationView {
	c := k.Compare(name)
	v := GenerationView{
		Name: name, State: GenerationStandby, Nodes: namesOf(k.Nodes(name)), Jobs: c.Jobs, Running: c.Running,
		Added: namesOf(c.Added), Removed: namesOf(c.Removed), Unsettled: namesOf(c.Unsettled),
		Schedules: []ScheduleChange{}, Settings: []SettingsChange{},
	}
	if k.Control.Generation == name {
		v.State = GenerationActive
	}
	if p, ok := ledger.PromotionOf(k.Control.Promoting); ok && p.Generation == name {
		v.State, v.Promotion = GenerationPromoting, &PromotionView{Epoch: p.Epoch, Pattern: p.Pattern, CancelRunning: p.Cancel}
	}
	for _, change := range c.Others {
		if change.Rescheduled() {
			if v.Changed.Schedules++; len(v.Schedules) < namesMost {
				v.Schedules = append(v.Schedules, scheduleChange(change, now))
			}
		}
		if fields := change.Settings(); len(fields) > 0 {
			if v.Changed.Settings++; len(v.Settings) < namesMost {
				v.Settings = append(v.Settings, SettingsChange{Job: change.Job, Fields: fields})
			}
		}
	}
	return v
}

func scheduleChange(c generations.Change, now time.Time) ScheduleChange {
	tomorrow := now.Add(24 * time.Hour)
	view := func(d jobs.Definition) (ScheduleView, *jobs.Schedule) {
		v := ScheduleView{Schedule: d.Schedule, TimeZone: d.TimeZone, After: strings.Join(d.After, ", ")}
		s, err := d.ParsedSchedule()
		if err != nil || s == nil {
			return v, nil // it follows another job, or cannot be read
		}
		v.Schedule = strings.TrimSpace(v.Schedule + " " + s.Bounds())
		v.Ticks, _ = s.Count(now, tomorrow)
		return v, s
	}
	out := ScheduleChange{Job: c.Job}
	var was, is *jobs.Schedule
	out.Now, was = view(c.Now)
	out.New, is = view(c.New)
	onlyNow, onlyNew := generations.Apart(was, is, now, tomorrow, instantsMost)
	out.OnlyNow, out.OnlyNew = onlyNow, onlyNew
	return out
}

// PromoteOptions are the options of Promote. The zero value promotes all jobs, and lets runs go on.
type PromoteOptions struct {
	// Pattern selects jobs by name, as path.Match does. The active generation then stays the one
	// that creates new jobs, even for "*". Default "", all jobs.
	Pattern string `json:"job,omitempty"`
	// CancelRunning cancels runs of these jobs on nodes of other generations. Default: they go on,
	// and hold their leases.
	CancelRunning bool `json:"cancel_running,omitempty"`
	// Force promotes a generation without living nodes, or definitions that no living node holds.
	// Nothing runs then until such a node starts.
	Force bool `json:"force,omitempty"`
	// Author is who promotes, for the record of cancelled runs. Default "unknown".
	Author string
}

// detail is the request in words.
func (o PromoteOptions) detail() string {
	var words []string
	if o.Pattern != "" {
		words = append(words, "jobs "+o.Pattern)
	}
	if o.CancelRunning {
		words = append(words, "runs of others are cancelled")
	}
	if o.Force {
		words = append(words, "by force")
	}
	return strings.Join(words, ", ")
}

// Promotion is the result of Promote. Jobs that an earlier, interrupted call has switched are not
// counted again.
type Promotion struct {
	Generation string `json:"generation"`
	Pattern    string `json:"pattern"`
	// Was is the generation that was active when this call began. Promoted with the same pattern,
	// it is the way back.
	Was string `json:"was"`
	// Epoch is the promotion's number, or the last one's when there was nothing to do.
	Epoch int64 `json:"epoch"`
	// Resumed reports that this call has completed an interrupted one.
	Resumed bool `json:"resumed"`
	// Switched jobs belonged to another generation, Created jobs to none. This call switched them,
	// or the generation's nodes did meanwhile.
	Switched Names `json:"switched"`
	Created  Names `json:"created"`
	// Orphaned are jobs that the generation does not have; no node runs them any more. `jobs
	// remove` deletes them, and a promotion of their generation brings them back.
	Orphaned Names `json:"orphaned"`
	// LeftOut are jobs whose definitions are stored for the generation, but no living node of it
	// has them.
	LeftOut Names `json:"left_out"`
	// UnknownFormat are jobs whose records this version cannot read.
	UnknownFormat Names `json:"left_alone"`
	// Cancelled is how many runs were cancelled.
	Cancelled int `json:"cancelled"`
}

// Nothing reports that there was nothing to do: the generation has these jobs already.
func (p Promotion) Nothing() bool {
	return !p.Resumed && p.Switched.Count+p.Created.Count+p.Orphaned.Count+p.Cancelled == 0
}

type promoteIn struct {
	Generation string `path:"name" none:"-"`
	PromoteOptions
	Reason string `json:"reason,omitempty"`
}

var rowPromote = row(&Operation[promoteIn, Promotion]{
	Info: Info{Method: "POST", Path: "generations/{name}/promote", Role: Operator, Long: true, Audit: "generations promote", Summary: "make a generation the one that runs; - is the one without a name"},
	do: func(ctx context.Context, c *conn, in promoteIn) (Promotion, error) {
		return promoteGeneration(ctx, c, in.Generation, in.PromoteOptions)
	},
	note: func(in promoteIn, _ Promotion) Action {
		return Action{Target: in.Generation, Author: in.Author, Reason: in.Reason, Detail: in.detail()}
	},
})

// Promote makes nodes run a generation's definitions: of all jobs, which makes the generation
// active, or of the jobs that match a pattern. One script switches each job, so two generations can
// never claim the same tick, and the generation's nodes claim within about 250 ms. A job with an
// unchanged schedule goes on at its cursor. When the schedule changes, due ticks of the old one are
// recorded as superseded, as in a deploy. Runs go on and hold their leases, unless CancelRunning is
// set.
//
// A repeated call completes an interrupted promotion under the same epoch. Another promotion may
// begin meanwhile; it replaces this one. To go back, promote the generation that was active before.
// Promote returns ErrRefused for an unknown generation, a generation without a living node, a
// generation whose nodes have just started, a pattern that is invalid or matches no job of the
// generation, an author that is not UTF-8, and, together with ErrClosed, while a move has closed
// the namespace. If Redis answers later than max_skew, or the clocks of a Cluster's masters differ
// by more, it fails with both instants in the error; call it again.
func (c *Client) Promote(ctx context.Context, generation string, o PromoteOptions) (Promotion, error) {
	return call(ctx, c, rowPromote, promoteIn{Generation: generation, PromoteOptions: o})
}

func promoteGeneration(ctx context.Context, c *conn, generation string, o PromoteOptions) (done Promotion, err error) {
	o.Author, _ = c.by(o.Author, "")
	if err := utf8Only("promote "+generation, o.Author, ""); err != nil {
		return Promotion{}, err
	}
	l, err := c.OpenAppend(ctx)
	if err != nil {
		return Promotion{}, err
	}
	o.Author = author(o.Author)
	p, err := generations.Promote(ctx, l, c.Roster(), generation, generations.Options{Pattern: o.Pattern, CancelRunning: o.CancelRunning, Force: o.Force, Author: o.Author})
	return Promotion{
		Generation: generation, Pattern: o.Pattern, Was: p.Was, Epoch: p.Epoch, Resumed: p.Resumed, Switched: namesOf(p.Switched), Created: namesOf(p.Created),
		Orphaned: namesOf(p.Orphaned), LeftOut: namesOf(p.LeftOut), UnknownFormat: namesOf(p.UnknownFormat), Cancelled: p.Cancelled,
	}, err
}
