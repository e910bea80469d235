package metrics

import (
	"bytes"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Handler serves the metrics of some collectors, and those of the process. Collectors in one process need Labels by
// which they differ. The answer is text, or for a scraper that wants native histograms protobuf, which takes longer to
// make. It is not compressed: that would cost more than all the rest.
func Handler(all ...*Collector) http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	protobuf := prometheus.NewRegistry()
	protobuf.MustRegister(together(all))
	h := &handler{all: all, process: process}
	h.protobuf = promhttp.HandlerFor(prometheus.Gatherers{protobuf, process}, promhttp.HandlerOpts{DisableCompression: true})
	return h
}

// together collects the metrics of several collectors.
type together []*Collector

// Describe sends the descriptors of all.
func (t together) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range t {
		c.Describe(ch)
	}
}

// Collect sends the metrics of all.
func (t together) Collect(ch chan<- prometheus.Metric) {
	for _, c := range t {
		c.Collect(ch)
	}
}

type handler struct {
	all      []*Collector
	process  *prometheus.Registry
	protobuf http.Handler
	buffers  sync.Pool // of *text
}

// ServeHTTP answers a scrape.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format := expfmt.Negotiate(r.Header)
	if format.FormatType() != expfmt.TypeTextPlain {
		h.protobuf.ServeHTTP(w, r)
		return
	}
	t, _ := h.buffers.Get().(*text)
	if t == nil {
		t = new(text)
	}
	defer h.buffers.Put(t)
	t.b = t.b[:0]
	if err := h.write(t); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(format))
	_, _ = w.Write(t.b) // the scraper went away; nobody is left to tell
}

// write writes all metrics.
func (h *handler) write(t *text) error {
	for _, f := range []family{lastSuccess, runDuration, runLag, ticks} {
		t.head(f)
		for _, c := range h.all {
			c.jobs.text(t, f)
		}
	}
	list, err := h.process.Gather()
	if err != nil {
		return err
	}
	others, err := h.others()
	if err != nil {
		return err
	}
	rest := bytes.NewBuffer(t.b)
	for _, f := range slices.Concat(others, list) {
		if _, err := expfmt.MetricFamilyToText(rest, f); err != nil {
			return err
		}
	}
	t.b = rest.Bytes()
	return nil
}

// others are the families that are not by job, by name.
func (h *handler) others() (list []*dto.MetricFamily, err error) {
	var by [families]*dto.MetricFamily
	for _, c := range h.all {
		c.eachOther(func(f family, m prometheus.Metric) {
			if by[f] == nil {
				d := &described[f]
				by[f] = &dto.MetricFamily{Name: &d.name, Help: &d.help, Type: &d.kind}
			}
			out := new(dto.Metric)
			if wrong := m.Write(out); err == nil {
				err = wrong
			}
			by[f].Metric = append(by[f].Metric, out)
		})
	}
	for _, f := range by {
		if f != nil {
			list = append(list, f)
		}
	}
	return list, err
}
