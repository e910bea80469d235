package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/escapement/escapement/scheduler"
)

// JobLabel is the label of a job's series, NodeLabel the label that the program adds where a
// process has several nodes. They have a prefix, because a scrape renames the labels that its
// target has too: job becomes exported_job.
const (
	JobLabel  = "escapement_job"
	NodeLabel = "escapement_node"
)

// targetLabels are the labels that a target usually has: job and instance from every scrape, the
// rest from service discovery in Kubernetes, from rewriting rules and from external_labels.
var targetLabels = []string{
	"cluster", "container", "endpoint", "instance", "job", "namespace", "node", "pod", "prometheus", "prometheus_replica", "replica", "service",
}

// renamed reports whether a scrape renames a label, or drops it.
func renamed(label string) bool {
	return slices.Contains(targetLabels, label) || strings.HasPrefix(label, "exported_") || strings.HasPrefix(label, "__")
}

// family is a metric with all its series.
type family int

const (
	claims family = iota
	clockOffset
	hooksDropped
	lastSuccess
	nodeJobs
	leaseLost
	nodeReady
	redisCall
	redisUp
	runDuration
	runLag
	slots
	stalled
	ticks

	families // how many there are
)

// set adds a series of a node's state to a family.
type set func(value float64, labels ...string)

// described is every family: its name, help, type and labels, and the source of its series. A new
// family is a constant above, a row here, and a row in docs/metrics.md.
var described = [families]struct {
	name, help string
	kind       prometheus.ValueType // 0 where the series are kept between scrapes
	labels     []string
	read       func(n nodeState, set set) // as kind
}{
	claims: {
		"escapement_claims_total", "Answers to the node's claims.", prometheus.CounterValue, []string{"answer"},
		func(n nodeState, set set) {
			for answer, count := range n.Claims {
				set(float64(count), answer)
			}
		},
	},
	clockOffset: {
		"escapement_clock_offset_seconds", "How far the clock of Redis is ahead of the node's own.", prometheus.GaugeValue, nil,
		func(n nodeState, set set) { set(n.ClockOffset.Seconds()) },
	},
	hooksDropped: {
		"escapement_hooks_dropped_total", "Events that the hooks did not get, because their queue was full or a hook panicked.", prometheus.CounterValue, nil,
		func(n nodeState, set set) { set(float64(n.HooksDropped)) },
	},
	lastSuccess: {
		"escapement_job_last_success_timestamp_seconds", "When a run of the job last succeeded, as far as this node knows; 0 for never.",
		0, []string{JobLabel}, nil,
	},
	nodeJobs: {
		"escapement_jobs", "Jobs by their state on the node. A job may count in more than one.", prometheus.GaugeValue, []string{"state"},
		func(n nodeState, set set) {
			set(float64(n.Jobs.All), "all")
			set(float64(n.Jobs.NoNode), "no_node")
			set(float64(n.Jobs.Owned), "owned")
			set(float64(n.Jobs.Standby), "standby")
			set(float64(n.Jobs.Superseded), "superseded")
			set(float64(n.Jobs.Unregistered), "unregistered")
		},
	},
	leaseLost: {
		"escapement_lease_lost_total", "Runs that lost their leases while their functions were running.", prometheus.CounterValue, nil,
		func(n nodeState, set set) { set(float64(n.LeasesLost)) },
	},
	nodeReady: {
		"escapement_node_ready", "Whether the node has registered its jobs and may claim.", prometheus.GaugeValue, nil,
		func(n nodeState, set set) { set(truth(n.ready)) },
	},
	redisCall: {"escapement_redis_call_seconds", "Duration of calls to Redis, by script or command. A pipeline is one call.", 0, []string{"verb"}, nil},
	redisUp: {
		"escapement_redis_up", "Whether the Redis master answers and takes writes.", prometheus.GaugeValue, []string{"master"},
		func(n nodeState, set set) {
			for _, m := range n.Masters {
				set(truth(m.Up), m.Addr)
			}
		},
	},
	runDuration: {"escapement_run_duration_seconds", "Duration of runs that were started.", 0, []string{JobLabel}, nil},
	runLag:      {"escapement_run_lag_seconds", "How late runs were started, from the tick.", 0, []string{JobLabel}, nil},
	slots: {
		"escapement_slots", "Slots for runs on the node, by state.", prometheus.GaugeValue, []string{"state"},
		func(n nodeState, set set) {
			set(float64(max(0, n.Slots-n.SlotsUsed)), "free")
			set(float64(n.SlotsUsed), "running")
		},
	},
	stalled: {
		"escapement_stalled_total", "How often a run made no progress for its job's stall_after.", prometheus.CounterValue, nil,
		func(n nodeState, set set) { set(float64(n.Stalled)) },
	},
	ticks: {"escapement_ticks_total", "Ticks and runs that this node recorded, by outcome.", 0, []string{JobLabel, "outcome"}, nil},
}

// nodeState is the state of a node at a scrape.
type nodeState struct {
	scheduler.Stats
	ready bool
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Names are the names of all metrics, in order.
func Names() []string {
	names := make([]string, families)
	for f, d := range described {
		names[f] = d.name
	}
	return names
}

// Native histograms: each bucket is a tenth larger than the one before, a hundred of them at most.
const (
	bucketFactor = 1.1
	bucketsMax   = 100
)

// histograms makes the histograms of a family: native, with classic buckets too. Without split the
// family is one histogram.
func (f family) histograms(labels prometheus.Labels, split bool, buckets ...float64) *prometheus.HistogramVec {
	d := described[f]
	var splitBy []string
	if split {
		splitBy = d.labels
	}
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: d.name, Help: d.help, ConstLabels: labels, Buckets: buckets,
		NativeHistogramBucketFactor: bucketFactor, NativeHistogramMaxBucketNumber: bucketsMax,
	}, splitBy)
}
