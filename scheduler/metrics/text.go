package metrics

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// histogram is a histogram of a job. The text format shows its own classic buckets, which cost little to read, and most
// scrapes are of text. The rest is for the format that has native buckets.
type histogram struct {
	prometheus.Histogram
	buckets []float64
	counts  []int64 // not cumulative; the last one is +Inf
	sum     float64
}

func newHistogram(of *prometheus.HistogramVec, job string, buckets []float64) histogram {
	return histogram{Histogram: of.WithLabelValues(job).(prometheus.Histogram), buckets: buckets, counts: make([]int64, len(buckets)+1)}
}

// observe adds a value. The caller holds the series' mutex.
func (h *histogram) observe(v float64) {
	h.Observe(v)
	i := 0
	for i < len(h.buckets) && v > h.buckets[i] {
		i++
	}
	h.counts[i]++
	h.sum += v
}

// text writes series of jobs in Prometheus' text format: what a registry and its encoder do, in a tenth of the time.
type text struct {
	to io.Writer
	b  []byte // not written yet
}

// flush writes. An error means that the scraper went away; nobody is left to tell.
func (t *text) flush() {
	_, _ = t.to.Write(t.b)
	t.b = t.b[:0]
}

// head begins a family.
func (t *text) head(f family) {
	d := &described[f]
	t.add("# HELP ", d.name, " ", d.help, "\n# TYPE ", d.name, " ", strings.ToLower(d.kind.String()), "\n")
}

func (t *text) add(pieces ...string) {
	for _, p := range pieces {
		t.b = append(t.b, p...)
	}
}

// count ends a line with a number.
func (t *text) count(n int64) { t.b = append(strconv.AppendInt(t.b, n, 10), '\n') }

// float ends a line with a number.
func (t *text) float(v float64) { t.b = append(strconv.AppendFloat(t.b, v, 'g', -1, 64), '\n') }

// histogram adds the lines of a histogram; labels lack the closing brace.
func (t *text) histogram(name, labels string, h *histogram, les []string) {
	n := int64(0)
	for i, count := range h.counts {
		n += count
		t.add(name, "_bucket", labels, les[i])
		t.count(n)
	}
	t.add(name, "_sum", labels, "} ")
	t.float(h.sum)
	t.add(name, "_count", labels, "} ")
	t.count(n)
}

// lesOf are the ends of the lines of buckets, up to the value.
func lesOf(buckets []float64) (les []string) {
	for _, b := range buckets {
		les = append(les, `,le="`+strconv.FormatFloat(b, 'g', -1, 64)+`"} `)
	}
	return append(les, `,le="+Inf"} `)
}

var (
	lagLes, durationLes = lesOf(lagBuckets), lesOf(durationBuckets)
	outcomeEnds         = func() (ends []string) {
		for _, o := range outcomes {
			ends = append(ends, `,outcome="`+o.String()+`"} `)
		}
		return ends
	}()
)

// labelsOf are the labels of a job's series, without the closing brace.
func labelsOf(job string, more prometheus.Labels) string {
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace
	labels := `{` + JobLabel + `="` + escape(job) + `"`
	for _, name := range slices.Sorted(maps.Keys(more)) {
		labels += "," + name + `="` + escape(more[name]) + `"`
	}
	return labels
}

// chunk is how many jobs are written at once: hooks wait meanwhile, and the buffer has room for them.
const chunk = 128

// text updates the jobs and writes the series of a family.
func (s *jobSeries) text(t *text, f family) {
	s.mu.Lock()
	s.updateLocked()
	all := slices.Clone(s.all)
	s.mu.Unlock()
	for some := range slices.Chunk(all, chunk) {
		s.mu.Lock()
		for _, j := range some {
			j.text(t, f)
		}
		s.mu.Unlock()
		t.flush()
	}
}

// text adds the series of a family. The caller holds the series' mutex.
func (j *oneJob) text(t *text, f family) {
	name := described[f].name
	switch f {
	case lastSuccess:
		if !j.shared {
			t.add(name, j.labels, "} ")
			t.float(float64(j.success) / 1000)
		}
	case runDuration:
		t.histogram(name, j.labels, &j.duration, durationLes)
	case runLag:
		t.histogram(name, j.labels, &j.lag, lagLes)
	default: // ticks
		for i, o := range outcomes {
			t.add(name, j.labels, outcomeEnds[i])
			t.count(j.ticks[o])
		}
	}
}
