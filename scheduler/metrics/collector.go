package metrics

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/escapement/escapement/scheduler"
)

// DefaultJobs is the default of Config.Jobs.
const DefaultJobs = 1000

// Config configures a Collector. The zero value is useful.
type Config struct {
	// Jobs bounds the jobs with series of their own: the first Jobs jobs of the node, in the order
	// of their arrival. The remaining jobs share series whose JobLabel is empty, and have no last
	// success. Negative: no job has series of its own. Default DefaultJobs.
	Jobs int
	// JobHistograms gives each job with series of its own histograms of its own, of lag and
	// duration. Default: all jobs share one.
	JobHistograms bool
	// Labels are added to every series, such as NodeLabel where a process has several nodes.
	// Default none. Labels that a scrape renames, such as job or instance, are logged.
	Labels prometheus.Labels
	// Logger gets one warning when Handler is scraped before the collector watches a node, and one
	// for each of the Labels that a scrape renames. Default slog.Default().
	Logger *slog.Logger
}

// Collector collects the metrics of one node at a time. It is safe for concurrent use.
type Collector struct {
	jobs  *jobSeries
	redis *redisSeries
	node  atomic.Pointer[scheduler.Node]
	descs [families]*prometheus.Desc // of the node's state; nil: the series are kept

	log    *slog.Logger
	warned sync.Once // that it watches no node
}

var _ prometheus.Collector = (*Collector)(nil)

// New makes a collector without a node. See Watch.
func New(cfg Config) *Collector {
	c := &Collector{redis: newRedisSeries(cfg.Labels), log: cfg.Logger}
	if c.log == nil {
		c.log = slog.Default()
	}
	for _, label := range slices.Sorted(maps.Keys(cfg.Labels)) {
		if renamed(label) {
			c.log.Warn("a scrape renames this label of the metrics, because its target has one of that name: choose another name, such as "+NodeLabel,
				"label", label, "renamed", "exported_"+label)
		}
	}
	for f, d := range described {
		if d.kind != 0 {
			c.descs[f] = prometheus.NewDesc(d.name, d.help, d.labels, cfg.Labels)
		}
	}
	c.jobs = newJobSeries(cfg, c.node.Load)
	return c
}

// Watch makes the collector show a node, in place of the one before. The node's jobs get their
// series.
func (c *Collector) Watch(n *scheduler.Node) {
	c.node.Store(n)
	c.jobs.update()
}

// warnUnwatched logs once that the collector watches no node: then most families are missing, and
// no scrape fails.
func (c *Collector) warnUnwatched() {
	if c.node.Load() != nil {
		return
	}
	c.warned.Do(func() {
		c.log.Warn("most metrics are missing, because the collector watches no node: call Collector.Watch with the node")
	})
}

// Hooks are the hooks through which the collector gets its node's events. scheduler.JoinHooks adds
// further hooks.
func (c *Collector) Hooks() *scheduler.Hooks {
	return &scheduler.Hooks{Settled: c.jobs.settled, Skipped: c.jobs.missed, Abandoned: c.jobs.abandoned}
}

// Describe sends the descriptors of all metrics.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range c.kept() {
		v.Describe(ch)
	}
	for _, d := range c.descs {
		if d != nil {
			ch <- d
		}
	}
}

// kept are the series that are kept between scrapes.
func (c *Collector) kept() []prometheus.Collector { return append(c.jobs.vectors(), c.redis.calls) }

// Collect sends all metrics.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.jobs.update()
	for _, v := range c.kept() {
		v.Collect(ch)
	}
	n := c.node.Load()
	if n == nil {
		return
	}
	state := nodeState{n.Stats(), n.Ready() == nil}
	for f, d := range described {
		if d.read != nil {
			d.read(state, func(value float64, labels ...string) {
				ch <- prometheus.MustNewConstMetric(c.descs[f], d.kind, value, labels...)
			})
		}
	}
}
