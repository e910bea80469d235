package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves the metrics of some collectors and of the process. Collectors in one process need
// different Labels; Handler panics where they have none. The answer is text, or for a scraper that
// wants native histograms protobuf, not compressed. A collector that watches no node is logged
// once.
func Handler(all ...*Collector) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, c := range all {
		reg.MustRegister(c)
	}
	scrape := promhttp.HandlerFor(reg, promhttp.HandlerOpts{DisableCompression: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, c := range all {
			c.warnUnwatched()
		}
		scrape.ServeHTTP(w, r)
	})
}
