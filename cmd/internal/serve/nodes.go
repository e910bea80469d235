package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/console"
	"github.com/escapement/escapement/scheduler/metrics"
	"github.com/escapement/escapement/scheduler/ops"
)

// sameSignal is how long after the first signal another one is taken for the same:
// timeout(1) and some supervisors send theirs to the process and to its group.
const sameSignal = 200 * time.Millisecond

var errSecondSignal = errors.New("second signal: exiting at once, runs are left to their leases; commands end within a second where there is /bin/sh, and go on elsewhere")

// nodes has the nodes of one process, and their shared parts.
type nodes struct {
	slots      []*nodeSlot
	supervisor *supervisor // gets the nodes' states; nil for none
	several    bool        // there will be several nodes: metrics carry their names
}

// add makes one more node. The clients are closed by run.
func (n *nodes) add(at, next endpoint, l *config.Loaded, cfg scheduler.Config) error {
	labels := prometheus.Labels{}
	if n.several {
		labels[metrics.NodeLabel] = cfg.Name
	}
	s, err := newNodeSlot(at, next, l, cfg, metrics.New(metrics.Config{Jobs: l.HTTP.JobsWithMetrics(), JobHistograms: l.HTTP.MetricsHistograms == "job", Labels: labels}))
	if err == nil {
		n.slots = append(n.slots, s)
	}
	return err
}

// handler serves health of all nodes, and API and console of the namespace, below the base path and
// without it.
func (n *nodes) handler(cfg config.HTTP) http.Handler {
	mux, all, access := http.NewServeMux(), http.NewServeMux(), n.slots[0].l.HTTP.Access()
	health := healthHandler(n.slots)
	all.Handle("/healthz", health) // by any name: it only shows that a server listens
	all.Handle("/", access.Named(mux))
	for _, path := range []string{"/readyz", "/version"} {
		mux.Handle(path, health)
	}
	var collectors []*metrics.Collector
	for _, s := range n.slots {
		collectors = append(collectors, s.metrics)
	}
	mux.Handle("/metrics", n.slots[0].guard(ops.Viewer, metrics.Handler(collectors...)))
	mux.Handle("/", console.Handler(console.Config{API: n.slots[0], Name: n.slots[0].l.Namespace}))
	return console.Below(cfg.BasePath, all)
}

// run serves the health endpoints and runs the nodes until a signal, a node's end
// or the server's. started is called with the address before the nodes begin. After
// a second signal nothing is closed: the nodes still run, and the process ends.
func (n *nodes) run(cfg config.HTTP, log *slog.Logger, started func(url string)) error {
	srv, err := startServer(cfg, n.handler(cfg), log)
	if err != nil {
		return err
	}
	if words := cfg.Exposed(); words != "" {
		log.Warn("the HTTP address is open", "listen", cfg.Listen, "why", words)
	}
	url := srv.url()
	if srv != nil && cfg.BasePath != "" {
		url += cfg.BasePath + "/"
	}
	started(url)
	reload, end := newReloader(n.slots, log)
	defer end()
	parts := []func(context.Context) error{srv.wait, reload.run, func(ctx context.Context) error { return watch(ctx, n.supervisor, log, n.slots) }}
	for _, s := range n.slots {
		parts = append(parts, s.run)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return untilSignalled(signals, log, func(ctx context.Context) error {
		err := together(ctx, parts...)
		srv.stop() // after the nodes: /readyz shows the drain while it lasts
		for _, s := range n.slots {
			s.close()
		}
		if err == nil {
			log.Info("stopped")
		}
		return err
	})
}

// together runs the parts at once. The first to return ends the other parts; together returns when
// all have, with their errors.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(parts))
	for _, part := range parts {
		go func() { results <- part(ctx) }()
	}
	var errs []error
	for range parts {
		errs = append(errs, <-results)
		cancel()
	}
	return errors.Join(errs...)
}

// untilSignalled runs f. The first signal ends its context and waits; the second
// does not wait.
func untilSignalled(signals <-chan os.Signal, log *slog.Logger, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	var first time.Time
	for {
		select {
		case err := <-done:
			return err
		case s := <-signals:
			switch {
			case first.IsZero():
				first = time.Now()
				log.Info("stopping; once more exits at once", "signal", s.String())
				cancel()
			case time.Since(first) > sameSignal:
				return errSecondSignal
			}
		}
	}
}
