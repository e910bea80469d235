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
	ticks         [jobs.OutcomeSuperseded + 1]prometheus.Counter // nil for those that are not in outcomes
	lag, duration prometheus.Histogram
	success       prometheus.Gauge // nil for those that share
	succeeded     time.Time        // what success shows
}

// jobSeries are the series of a node's jobs. Hooks change them, scrapes read them.
type jobSeries struct {
	limit int
	node  func() *scheduler.Node

	ticks         *prometheus.CounterVec
	lag, duration *prometheus.HistogramVec
	success       *prometheus.GaugeVec

	mu      sync.Mutex
	names   []string // those with series of their own, in the node's order
	sorted  []string
	by      map[string]*oneJob
	shared  *oneJob         // nil until there is a job that has none of its own
	looked  time.Time       // when the node's jobs were last looked at for one that is missing
	unread  map[string]bool // their last success is to be read from the ledger
	changed chan struct{}   // holds one signal: unread is not empty
}

func newJobSeries(limit int, labels prometheus.Labels, node func() *scheduler.Node) *jobSeries {
	return &jobSeries{
		limit: limit, node: node, ticks: ticks.counters(labels), success: lastSuccess.gauges(labels),
		lag: runLag.histograms(labels, lagBuckets...), duration: runDuration.histograms(labels, durationBuckets...),
		by: make(map[string]*oneJob), unread: make(map[string]bool), changed: make(chan struct{}, 1),
	}
}

// newJob makes the series of a job, all of them 0.
func (s *jobSeries) newJob(name string) *oneJob {
	j := &oneJob{lag: s.lag.WithLabelValues(name).(prometheus.Histogram), duration: s.duration.WithLabelValues(name).(prometheus.Histogram)}
	for _, o := range outcomes {
		j.ticks[o] = s.ticks.WithLabelValues(name, o.String())
	}
	return j
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
	if more && s.shared == nil {
		s.shared = s.newJob("")
	}
	if same && at == len(s.names) {
		return
	}
	s.names = s.names[:at]
	for _, name := range s.names {
		if s.by[name] == nil {
			j := s.newJob(name)
			j.success = s.success.WithLabelValues(name)
			s.by[name] = j
			s.read(name)
		}
	}
	s.sorted = slices.Sorted(slices.Values(s.names))
	maps.DeleteFunc(s.by, func(name string, _ *oneJob) bool {
		_, has := slices.BinarySearch(s.sorted, name)
		if !has {
			s.forget(name)
		}
		return !has
	})
}

// forget deletes the series of a job.
func (s *jobSeries) forget(name string) {
	delete(s.unread, name)
	of := prometheus.Labels{"job": name}
	s.ticks.DeletePartialMatch(of)
	s.success.DeletePartialMatch(of)
	s.lag.DeletePartialMatch(of)
	s.duration.DeletePartialMatch(of)
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
	if s.shared == nil { // another node's job, or one that was removed
		s.shared = s.newJob("")
	}
	return s.shared
}

func (s *jobSeries) settled(e scheduler.SettledEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.of(e.Job)
	if e.Tries > 0 {
		j.lag.Observe(e.Lag.Seconds())
		j.duration.Observe(e.Duration.Seconds())
	}
	if !e.Recorded {
		return // another node counts the outcome that it recorded
	}
	j.count(e.Outcome, 1)
	switch {
	case e.Outcome != jobs.OutcomeSucceeded || j.success == nil:
	case e.Shards > 1:
		s.read(e.Job) // whether the whole tick has succeeded, only the ledger knows
	default:
		j.succeededAt(e.Tick.Add(e.Lag + e.Duration))
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
	if int(o) < len(j.ticks) && j.ticks[o] != nil {
		j.ticks[o].Add(float64(n))
	}
}

// succeededAt notes a success, unless a later one is known.
func (j *oneJob) succeededAt(at time.Time) {
	if at.After(j.succeeded) {
		j.succeeded = at
		j.success.Set(float64(at.UnixMilli()) / 1000)
	}
}

// each updates the jobs and calls f for each series.
func (s *jobSeries) each(f func(family, prometheus.Metric)) {
	s.mu.Lock()
	s.updateLocked()
	all := make([]*oneJob, 0, len(s.sorted)+1)
	if s.shared != nil {
		all = append(all, s.shared)
	}
	for _, name := range s.sorted {
		all = append(all, s.by[name])
	}
	s.mu.Unlock()
	for _, j := range all {
		if j.success != nil {
			f(lastSuccess, j.success)
		}
		f(runDuration, j.duration)
		f(runLag, j.lag)
		for _, o := range outcomes {
			f(ticks, j.ticks[o])
		}
	}
}
