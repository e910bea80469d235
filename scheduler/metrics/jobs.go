package metrics

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// The classic buckets. A lag below 10 ms is of no interest; from 500 ms on, a node other than the
// owner claims.
var (
	lagBuckets      = []float64{.01, .05, .1, .25, .5, 1, 2.5, 10, 60}
	durationBuckets = []float64{.01, .1, 1, 10, 60, 600, 3600}
)

// outcomes are the outcomes with events of a node's hooks. Ticks of a definition that was replaced
// are recorded without an event.
var outcomes = []jobs.Outcome{
	jobs.OutcomeAbandoned, jobs.OutcomeCancelled, jobs.OutcomeFailed, jobs.OutcomeLost, jobs.OutcomeMissed, jobs.OutcomePaused,
	jobs.OutcomeSkipped, jobs.OutcomeSucceeded, jobs.OutcomeTimedOut,
}

// oneJob is the series of one job, or of all jobs that share some.
type oneJob struct {
	ticks         [jobs.OutcomeSuperseded + 1]prometheus.Counter // by outcome; nil where outcomes lacks it
	lag, duration prometheus.Observer
	success       prometheus.Gauge // nil of the shared series
	successAt     int64            // when a run last succeeded, ms; 0 for never
}

// jobSeries are the series of a node's jobs. Hooks change them, scrapes read them.
type jobSeries struct {
	limit      int
	histograms bool // each job has its own
	node       func() *scheduler.Node

	lag, duration *prometheus.HistogramVec
	success       *prometheus.GaugeVec
	ticks         *prometheus.CounterVec

	mu      sync.Mutex
	names   []string // jobs with series of their own, in the node's order
	by      map[string]*oneJob
	shared  *oneJob         // nil until there is a job that has none of its own
	looked  time.Time       // nil until a job has no series of its own
	unread  map[string]bool // their last success is to be read from the ledger
	changed chan struct{}   // holds one signal: unread is not empty
}

func newJobSeries(cfg Config, node func() *scheduler.Node) *jobSeries {
	d := described[lastSuccess]
	t := described[ticks]
	return &jobSeries{
		limit: max(0, cmp.Or(cfg.Jobs, DefaultJobs)), histograms: cfg.JobHistograms, node: node,
		lag: runLag.histograms(cfg.Labels, cfg.JobHistograms, lagBuckets...), duration: runDuration.histograms(cfg.Labels, cfg.JobHistograms, durationBuckets...),
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.name, Help: d.help, ConstLabels: cfg.Labels}, d.labels),
		ticks:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: t.name, Help: t.help, ConstLabels: cfg.Labels}, t.labels),
		by:      make(map[string]*oneJob), unread: make(map[string]bool), changed: make(chan struct{}, 1),
	}
}

// newJob makes the series of a job, all of them 0. Without a name they are the shared series.
func (s *jobSeries) newJob(name string) *oneJob {
	var of []string
	if s.histograms {
		of = []string{name}
	}
	j := &oneJob{lag: s.lag.WithLabelValues(of...), duration: s.duration.WithLabelValues(of...)}
	if name != "" {
		j.success = s.success.WithLabelValues(name)
	}
	for _, o := range outcomes {
		j.ticks[o] = s.ticks.WithLabelValues(name, o.String())
	}
	return j
}

// share makes the series of the jobs that have none of their own.
func (s *jobSeries) share() {
	if s.shared == nil {
		s.shared = s.newJob("")
	}
}

// update gives the node's jobs their series, and deletes the series of jobs that the node no longer
// has.
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
			if s.histograms {
				s.lag.DeleteLabelValues(name)
				s.duration.DeleteLabelValues(name)
			}
			s.success.DeleteLabelValues(name)
			s.ticks.DeletePartialMatch(prometheus.Labels{JobLabel: name})
		}
		return !has[name]
	})
}

// lookEvery is how often an event of an unknown job makes the node's jobs be looked at, since one
// may have been added.
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
		s.read(e.Job) // only the ledger has the result of the whole tick
	default:
		j.succeeded(e.Tick.Add(e.Lag + e.Duration))
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

// succeeded stores when the job succeeded, unless a later time is stored. The caller holds the
// series' mutex.
func (j *oneJob) succeeded(at time.Time) {
	if ms := at.UnixMilli(); ms > j.successAt {
		j.successAt = ms
		j.success.Set(float64(ms) / 1000)
	}
}

// vectors are all series of jobs.
func (s *jobSeries) vectors() []prometheus.Collector {
	return []prometheus.Collector{s.success, s.lag, s.duration, s.ticks}
}
