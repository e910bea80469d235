package metrics

import (
	"bufio"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Handler serves the metrics of some collectors, and those of the process. Collectors in one process need Labels by
// which they differ. The answer is text, or for a scraper that wants native histograms protobuf, which takes longer to
// make. It is not compressed: that would take six times as long as to write it. A collector that watches no node is
// logged once.
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
}

// ServeHTTP answers a scrape.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, c := range h.all {
		c.warnUnwatched()
	}
	format := expfmt.NegotiateAccept(r.Header, expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeProtoDelim))
	if format.FormatType() != expfmt.TypeTextPlain {
		h.protobuf.ServeHTTP(w, r)
		return
	}
	process, err := h.process.Gather()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	others, err := h.others()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(format))
	t := &text{to: w}
	for _, f := range []family{lastSuccess, runDuration, runLag, ticks} {
		t.head(f)
		for _, c := range h.all {
			c.jobs.text(t, f)
		}
	}
	t.flush()
	rest := bufio.NewWriter(w)
	for _, f := range slices.Concat(others, process) {
		_, _ = expfmt.MetricFamilyToText(rest, f) // as flush
	}
	_ = rest.Flush()
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
