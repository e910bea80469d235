package metrics

import (
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Handler serves the metrics of some collectors, and those of the process. Collectors in one process need Labels by
// which they differ. It costs a third of what a registry would, because the collectors' series are known to be sound.
// The answer is not compressed: that would cost more than all the rest.
func Handler(all ...*Collector) http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerForTransactional(gatherer{all, process}, promhttp.HandlerOpts{DisableCompression: true, CoalesceGather: true})
}

// gatherer gathers the metrics of collectors and of the process.
type gatherer struct {
	all     []*Collector
	process *prometheus.Registry
}

// Gather returns all metric families by name. There is nothing to be done when they have been read.
func (g gatherer) Gather() ([]*dto.MetricFamily, func(), error) {
	var by [families]*dto.MetricFamily
	var first error
	for _, c := range g.all {
		c.each(func(f family, m prometheus.Metric) {
			if by[f] == nil {
				d := &described[f]
				by[f] = &dto.MetricFamily{Name: &d.name, Help: &d.help, Type: &d.kind}
			}
			out := new(dto.Metric)
			if err := m.Write(out); err != nil && first == nil {
				first = err
			}
			by[f].Metric = append(by[f].Metric, out)
		})
	}
	list, err := g.process.Gather()
	if first == nil {
		first = err
	}
	for _, f := range by {
		if f != nil {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list, func() {}, first
}
