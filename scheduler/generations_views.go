package scheduler

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
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

// Generations lists the generations of the namespace, by name: those of living nodes, those whose jobs are stored, and those of
// which definitions are kept. Each is compared with what is run now. It returns ErrUnknownNamespace.
func (i *Inspector) Generations(ctx context.Context) ([]GenerationView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return nil, err
	}
	k, err := i.known(ctx, l)
	if err != nil {
		return nil, err
	}
	now, _, err := l.Time(ctx)
	if err != nil {
		return nil, err
	}
	var views []GenerationView
	for _, name := range k.names {
		views = append(views, k.view(name, now))
	}
	return views, nil
}

func (k *known) view(name string, now time.Time) GenerationView {
	v := GenerationView{Name: name, State: GenerationStandby}
	if k.control.Generation == name {
		v.State = GenerationActive
	}
	if p, ok := ledger.PromotionOf(k.control.Promoting); ok && p.Generation == name {
		v.State, v.Promotion = GenerationPromoting, &PromotionView{Epoch: p.Epoch, Pattern: p.Pattern, CancelRunning: p.Cancel}
	}
	var nodes []string
	for _, m := range k.members {
		if m.Generation == name {
			nodes = append(nodes, m.Name)
		}
	}
	slices.Sort(nodes)
	for _, n := range nodes {
		v.Nodes.add(n)
	}
	k.compare(&v, now)
	for _, n := range []*Names{&v.Nodes, &v.Added, &v.Removed, &v.Unsettled} {
		*n = n.shown()
	}
	return v
}

// otherHolders are the living nodes that hold a job in another definition than the stored one: those of its generation, and
// those of another.
func otherHolders(c *cluster.Crowd, members []sharding.Member, job, digest, generation string) (superseded, standby []string) {
	for _, m := range members {
		held := c.Sets[m.Set][job]
		switch {
		case held == "" || held == digest:
		case m.Generation == generation:
			superseded = append(superseded, m.Name)
		default:
			standby = append(standby, m.Name)
		}
	}
	return first(superseded), first(standby)
}

func first(names []string) []string {
	slices.SortFunc(names, strings.Compare)
	return names[:min(len(names), namesMost)]
}
