package scheduler

import (
	"context"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/generations"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// The states of a GenerationView.
const (
	// GenerationActive is the one that makes new jobs: the first in the namespace, or the last of which all jobs were promoted.
	GenerationActive = "active"
	// GenerationStandby is any other. Jobs that were promoted by pattern may be its all the same.
	GenerationStandby = "standby"
	// GenerationPromoting is one that a promotion under way, or interrupted, makes jobs of.
	GenerationPromoting = "promoting"
)

// GenerationView is a deployed cluster beside others, and what would change if it were promoted.
type GenerationView struct {
	Name  string `json:"name"`
	State string `json:"state"`
	// Nodes are the living ones, by name, those that drain among them.
	Nodes Names `json:"nodes"`
	// Jobs is how many jobs it has, in the definitions that its living nodes hold or, where there is none, that are kept of
	// it; Running is how many jobs are its now, without those that it does not have: they are nobody's.
	Jobs    int `json:"jobs"`
	Running int `json:"running"`
	// Promotion is what is being promoted, while State is promoting.
	Promotion *PromotionView `json:"promotion,omitempty"`
	// Added are jobs that nobody runs now and that it has, those among them that a promotion has left to nobody; Removed are those that it does not have. Both, as what follows,
	// compare it with what is run now, whichever generation that is.
	Added   Names `json:"added"`
	Removed Names `json:"removed"`
	// Unsettled are jobs that its living nodes have and of which nothing is kept: its nodes have just started.
	Unsettled Names `json:"unsettled"`
	// Schedules are jobs that would run at other times, Settings those in which something else would change; Changed counts
	// each of both. The lists have the first 20.
	Changed   ChangeCounts     `json:"changed"`
	Schedules []ScheduleChange `json:"schedules"`
	Settings  []SettingsChange `json:"settings"`
}

// ChangeCounts is how many jobs have such a change.
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
	// OnlyNow and OnlyNew are the first instants of the next 24 hours that one schedule has and the other has not: 5 at most.
	OnlyNow []Stamp `json:"only_now"`
	OnlyNew []Stamp `json:"only_new"`
}

// ScheduleView is when a job runs.
type ScheduleView struct {
	Schedule string `json:"schedule"`
	TimeZone string `json:"time_zone"`
	After    string `json:"after"` // the job that it follows; it then has no schedule
	Ticks    int    `json:"ticks"` // in the next 24 hours
}

// SettingsChange is a job of which settings besides the schedule would change.
type SettingsChange struct {
	Job    string   `json:"job"`
	Fields []string `json:"fields"` // as in the stored definition: ttl_ms, shards, ...
}

// Names are the first of many names, in order.
type Names struct {
	Count int      `json:"count"`
	First []string `json:"first"` // 20 at most
}

// namesMost is how many names a Names has.
const namesMost = 20

// instantsMost is how many instants a ScheduleChange has of each schedule.
const instantsMost = 5

func namesOf(all []string) Names {
	return Names{Count: len(all), First: append([]string{}, first(all)...)}
}

func first(names []string) []string { return names[:min(len(names), namesMost)] }

// Generations lists the generations of the namespace, by name: those of living nodes, those whose jobs are stored, and those of
// which definitions are kept. Each is compared with what is run now. It returns ErrUnknownNamespace.
func (c *Client) Generations(ctx context.Context) ([]GenerationView, error) {
	l, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	k, err := generations.Read(ctx, l, c.roster())
	if err != nil {
		return nil, err
	}
	now, _, err := l.Time(ctx)
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
		v := ScheduleView{Schedule: d.Schedule, TimeZone: d.TimeZone, After: d.After}
		s, err := d.Job().ParsedSchedule()
		if err != nil || s == nil {
			return v, nil // it follows another job, or cannot be read
		}
		v.Ticks, _ = s.Count(now, tomorrow)
		return v, s
	}
	out := ScheduleChange{Job: c.Job}
	var was, is *jobs.Schedule
	out.Now, was = view(c.Now)
	out.New, is = view(c.New)
	onlyNow, onlyNew := generations.Apart(was, is, now, tomorrow, instantsMost)
	out.OnlyNow, out.OnlyNew = stamps(onlyNow), stamps(onlyNew)
	return out
}

// PromoteOptions are the options of Promote; the zero value promotes all jobs, and lets what runs end by itself.
type PromoteOptions struct {
	// Pattern restricts it to jobs whose names match, as in path.Match. New jobs are then still made by the generation that
	// was active before. Default "", which is all jobs; "*" is not the same, it leaves the active generation what it is.
	Pattern string
	// CancelRunning ends what nodes of other generations run of these jobs. Default: it goes on, and holds its lease.
	CancelRunning bool
	// Force promotes although no living node has the generation, or has a definition that is kept of it. Nothing runs then
	// until such a node starts.
	Force bool
	// Author is who promotes; it is kept with the runs that are cancelled. Default "unknown".
	Author string
}

// Promotion says what Promote did. Jobs that an earlier, interrupted call has switched are not counted again.
type Promotion struct {
	Generation string `json:"generation"`
	Pattern    string `json:"pattern"`
	// Was is the generation that was active when this call began. Promoted with the same pattern, it is the way back.
	Was string `json:"was"`
	// Epoch is the promotion's number; that of the last one when there was nothing to do.
	Epoch int64 `json:"epoch"`
	// Resumed says that this call has brought an interrupted one to its end: what that had done is not counted.
	Resumed bool `json:"resumed"`
	// Switched were another generation's, and Created nobody's: this call made them, or meanwhile the generation's nodes did.
	Switched Names `json:"switched"`
	Created  Names `json:"created"`
	// Orphaned are jobs that the generation does not have: nobody runs them any more. `jobs remove` takes them away, a
	// promotion back brings them back.
	Orphaned Names `json:"orphaned"`
	// LeftOut are kept of the generation, but no living node of it has them.
	LeftOut Names `json:"left_out"`
	// LeftAlone are jobs whose records this version does not understand.
	LeftAlone Names `json:"left_alone"`
	// Cancelled is how many runs were told to end.
	Cancelled int `json:"cancelled"`
}

// Nothing says that there was nothing to do: the generation has these jobs already.
func (p Promotion) Nothing() bool {
	return !p.Resumed && p.Switched.Count+p.Created.Count+p.Orphaned.Count+p.Cancelled == 0
}

// Promote makes a generation's definitions those that are run: of all jobs, which makes it the active generation, or of those
// that match a pattern. Each job is switched in one script, so there is no instant at which two generations may claim a
// tick of it, and none at which nobody may for longer than its nodes need to learn of it, which is about 250 ms.
// A job whose schedule is the same goes on where it stands; ticks of another schedule that nobody ran are recorded as superseded, as in a
// deploy. Runs in flight go on, unless CancelRunning is set, and hold their leases.
//
// Interrupted anywhere, the same call goes on under the same epoch. Another promotion may begin meanwhile: it outdates this one.
// Promote of the generation that was active before is the way back. It returns ErrRefused for a generation that is not
// known, one without a living node, one whose nodes have just started, a pattern that is none or that no job of the generation
// matches, and, together with ErrClosed, while a move has closed the namespace. Where Redis answers later than max_skew, or the clocks
// of a Cluster's masters differ by more, it fails with both instants in the error, and goes on when it is called again.
func (c *Client) Promote(ctx context.Context, generation string, o PromoteOptions) (Promotion, error) {
	l, err := c.openAppend(ctx)
	if err != nil {
		return Promotion{}, err
	}
	o.Author = author(o.Author)
	p, err := generations.Promote(ctx, l, c.roster(), generation, generations.Options(o))
	return Promotion{
		Generation: generation, Pattern: o.Pattern, Was: p.Was, Epoch: p.Epoch, Resumed: p.Resumed, Switched: namesOf(p.Switched), Created: namesOf(p.Created),
		Orphaned: namesOf(p.Orphaned), LeftOut: namesOf(p.LeftOut), LeftAlone: namesOf(p.LeftAlone), Cancelled: p.Cancelled,
	}, err
}
