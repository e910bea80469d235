package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// The classic buckets. A lag below 10 ms is nobody's concern; from 500 ms on, a node other than the owner claims.
var (
	lagBuckets      = []float64{.01, .05, .1, .25, .5, 1, 2.5, 10, 60}
	durationBuckets = []float64{.01, .1, 1, 10, 60, 600, 3600}
)

// outcomes are those that a node records and hears of. Ticks of a definition that was replaced are recorded without an event.
var outcomes = []jobs.Outcome{
	jobs.OutcomeAbandoned, jobs.OutcomeCancelled, jobs.OutcomeFailed, jobs.OutcomeLost, jobs.OutcomeMissed, jobs.OutcomePaused,
	jobs.OutcomeSkipped, jobs.OutcomeSucceeded, jobs.OutcomeTimedOut,
}

// oneJob is the series of one job, or of all jobs that share some.
type oneJob struct {
	name, labels  string // labels: as the text format has them
	shared        bool
	ticks         [jobs.OutcomeSuperseded + 1]int64
	lag, duration histogram
	success       int64 // when a run last succeeded, ms; 0 for never
}

// jobSeries are the series of a node's jobs. Hooks change them, scrapes read them.
type jobSeries struct {
	limit  int
	labels prometheus.Labels
	node   func() *scheduler.Node

	lag, duration  *prometheus.HistogramVec
	success, ended *prometheus.Desc

	mu      sync.Mutex
	names   []string // those with series of their own, in the node's order
	by      map[string]*oneJob
	shared  *oneJob         // nil until there is a job that has none of its own
	all     []*oneJob       // by name
	looked  time.Time       // when the node's jobs were last looked at for one that is missing
	unread  map[string]bool // their last success is to be read from the ledger
	changed chan struct{}   // holds one signal: unread is not empty
}

func newJobSeries(limit int, labels prometheus.Labels, node func() *scheduler.Node) *jobSeries {
	return &jobSeries{
		limit: limit, labels: labels, node: node,
		lag: runLag.histograms(labels, lagBuckets...), duration: runDuration.histograms(labels, durationBuckets...),
		success: lastSuccess.desc(labels), ended: ticks.desc(labels),
		by: make(map[string]*oneJob), unread: make(map[string]bool), changed: make(chan struct{}, 1),
	}
}

// newJob makes the series of a job, all of them 0.
func (s *jobSeries) newJob(name string) *oneJob {
	return &oneJob{name: name, labels: labelsOf(name, s.labels), lag: newHistogram(s.lag, name, lagBuckets), duration: newHistogram(s.duration, name, durationBuckets)}
}

// share makes the series of the jobs that have none of their own.
func (s *jobSeries) share() {
	if s.shared == nil {
		s.shared = s.newJob("")
		s.shared.shared = true
		s.all = slices.Insert(s.all, 0, s.shared)
	}
}

// update gives the node's jobs their series, and takes those of jobs away that the node has no more.
func (s *jobSeries) update() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updateLocked()
}

func (s *jobSeries) updateLocked() {
	n := s.node()
	if n == nil {
		return
	}
	at, same, more := 0, true, false
	for name := range n.JobNames() {
		if more = at == s.limit; more {
			break
		}
		if same = same && at < len(s.names) && s.names[at] == name; !same {
			s.names = append(s.names[:at], name)
		}
		at++
	}
	if more {
		s.share()
	}
	if same && at == len(s.names) {
		return
	}
	s.names = s.names[:at]
	has := make(map[string]bool, at)
	for _, name := range s.names {
		if has[name] = true; s.by[name] == nil {
			s.by[name] = s.newJob(name)
			s.read(name)
		}
	}
	maps.DeleteFunc(s.by, func(name string, _ *oneJob) bool {
		if !has[name] {
			delete(s.unread, name)
			s.lag.DeleteLabelValues(name)
			s.duration.DeleteLabelValues(name)
		}
		return !has[name]
	})
	s.all = s.all[:0]
	if s.shared != nil {
		s.all = append(s.all, s.shared)
	}
	for _, name := range slices.Sorted(maps.Keys(s.by)) {
		s.all = append(s.all, s.by[name])
	}
}

// lookEvery is how often an event of an unknown job makes the node's jobs be looked at, since one may have been added.
const lookEvery = time.Second

// of is the series that an event of a job counts in. The caller holds mu.
func (s *jobSeries) of(name string) *oneJob {
	if j := s.by[name]; j != nil {
		return j
	}
	if now := time.Now(); now.Sub(s.looked) >= lookEvery {
		s.looked = now
		s.updateLocked()
	}
	if j := s.by[name]; j != nil {
		return j
	}
	s.share() // another node's job, or one that was removed
	return s.shared
}

func (s *jobSeries) settled(e scheduler.SettledEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.of(e.Job)
	if e.Tries > 0 {
		j.lag.observe(e.Lag.Seconds())
		j.duration.observe(e.Duration.Seconds())
	}
	if !e.Recorded {
		return // another node counts the outcome that it recorded
	}
	j.count(e.Outcome, 1)
	switch {
	case e.Outcome != jobs.OutcomeSucceeded || j.shared:
	case e.Shards > 1:
		s.read(e.Job) // whether the whole tick has succeeded, only the ledger knows
	default:
		j.success = max(j.success, e.Tick.Add(e.Lag+e.Duration).UnixMilli())
	}
}

func (s *jobSeries) missed(e scheduler.SkippedEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(e.Job).count(e.Outcome, e.Count)
}

func (s *jobSeries) abandoned(e scheduler.AbandonedEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(e.Job).count(jobs.OutcomeAbandoned, 1)
}

func (j *oneJob) count(o jobs.Outcome, n int64) {
	if int(o) < len(j.ticks) {
		j.ticks[o] += n
	}
}

// each updates the jobs and calls f for each series.
func (s *jobSeries) each(f func(prometheus.Metric)) {
	s.mu.Lock()
	s.updateLocked()
	var list []prometheus.Metric
	for _, j := range s.all {
		if !j.shared {
			list = append(list, prometheus.MustNewConstMetric(s.success, prometheus.GaugeValue, float64(j.success)/1000, j.name))
		}
		list = append(list, j.lag.Histogram, j.duration.Histogram)
		for _, o := range outcomes {
			list = append(list, prometheus.MustNewConstMetric(s.ended, prometheus.CounterValue, float64(j.ticks[o]), j.name, o.String()))
		}
	}
	s.mu.Unlock()
	for _, m := range list {
		f(m)
	}
}
