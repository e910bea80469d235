package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/metrics"
	"github.com/escapement/escapement/scheduler/ops"
)

// job ticks every ten seconds.
func job(name string, f jobs.Func) jobs.Job {
	return jobs.Job{Name: name, Schedule: "@every 10s", TTL: 6 * time.Second, CatchUp: jobs.CatchUpNone, Func: f}
}

func succeeds(context.Context, *jobs.Run) error { return nil }

func fails(context.Context, *jobs.Run) error { return errors.New("no paper") }

func lasts(d time.Duration) jobs.Func {
	return func(context.Context, *jobs.Run) error {
		time.Sleep(d)
		return nil
	}
}

// A scrape of a collector without a node logs once that Watch is missing; after Watch it logs
// nothing.
func TestUnwatched(t *testing.T) {
	bubble(t, func(t *testing.T, server *redistest.Embedded) {
		var log bytes.Buffer
		cfg := metrics.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		m := metrics.New(cfg)
		scrape(t, m)
		scrape(t, m)
		if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "call Collector.Watch") {
			t.Errorf("the log: %s", got)
		}
		log.Reset()
		n := start(t, server.Client(), cfg, nil, job("ok", succeeds))
		defer n.stop()
		scrape(t, n.Collector)
		if log.Len() > 0 {
			t.Errorf("the log, with a node: %s", &log)
		}
	})
}

// A minute of a node with jobs that succeed, fail, skip every second tick and split into shards; a
// minute without a node; and another node. The user's own hooks get the same events.
func TestScrape(t *testing.T) {
	bubble(t, func(t *testing.T, server *redistest.Embedded) {
		settled := 0
		own := &scheduler.Hooks{Settled: func(scheduler.SettledEvent) { settled++ }}
		half := job("half", func(_ context.Context, r *jobs.Run) error {
			if r.Shard() == 1 {
				return errors.New("no paper")
			}
			return nil
		})
		half.Shards = 2
		once := jobs.Job{Name: "once", Schedule: "30 0 0 1 1 *", TTL: 6 * time.Second, Func: succeeds} // the bubble begins a year
		list := []jobs.Job{job("fails", fails), job("ok", succeeds), once, job("slow", lasts(13*time.Second)), half}
		time.Sleep(5 * time.Second)
		began := time.Now().Truncate(10 * time.Second)
		n := start(t, server.Client(), metrics.Config{JobHistograms: true}, own, list...)
		want(t, scrape(t, n.Collector), map[string]float64{ // before the first tick
			`escapement_ticks_total{escapement_job="ok",outcome="succeeded"}`:    0,
			`escapement_ticks_total{escapement_job="slow",outcome="lost"}`:       0,
			`escapement_run_lag_seconds_count{escapement_job="fails"}`:           0,
			`escapement_job_last_success_timestamp_seconds{escapement_job="ok"}`: 0,
			`escapement_jobs{state="all"}`:                                       5,
			`escapement_slots{state="free"}`:                                     512,
			`escapement_slots{state="running"}`:                                  0,
			`escapement_lease_lost_total`:                                        0,
			`escapement_stalled_total`:                                           0,
		})
		time.Sleep(58 * time.Second) // ticks at 10, 20, ..., 60
		got := scrape(t, n.Collector)
		want(t, got, map[string]float64{
			`escapement_ticks_total{escapement_job="ok",outcome="succeeded"}`:       6,
			`escapement_ticks_total{escapement_job="fails",outcome="failed"}`:       6,
			`escapement_ticks_total{escapement_job="fails",outcome="succeeded"}`:    0,
			`escapement_ticks_total{escapement_job="slow",outcome="succeeded"}`:     2, // the third goes on
			`escapement_ticks_total{escapement_job="slow",outcome="skipped"}`:       3,
			`escapement_ticks_total{escapement_job="half",outcome="succeeded"}`:     6,
			`escapement_ticks_total{escapement_job="half",outcome="failed"}`:        6,
			`escapement_run_lag_seconds_count{escapement_job="ok"}`:                 6,
			`escapement_run_lag_seconds_bucket{escapement_job="ok",le="0.01"}`:      6,
			`escapement_run_duration_seconds_bucket{escapement_job="slow",le="10"}`: 0,
			`escapement_run_duration_seconds_bucket{escapement_job="slow",le="60"}`: 2,
			`escapement_job_last_success_timestamp_seconds{escapement_job="ok"}`:    float64(began.Unix() + 60),
			`escapement_job_last_success_timestamp_seconds{escapement_job="slow"}`:  float64(began.Unix() + 43),
			`escapement_job_last_success_timestamp_seconds{escapement_job="half"}`:  0, // no tick of it has succeeded as a whole
			`escapement_jobs{state="owned"}`:                                        5,
			`escapement_jobs{state="unregistered"}`:                                 0,
			`escapement_slots{state="running"}`:                                     1,
			`escapement_redis_up{master="` + server.Client().Options().Addr + `"}`:  1,
			`escapement_node_ready`:          1,
			`escapement_hooks_dropped_total`: 0,
		})
		if got[`escapement_claims_total{answer="granted"}`] < 15 || got[`escapement_redis_call_seconds_count{verb="claim"}`] < 6 ||
			got[`escapement_redis_call_seconds_count{verb="evalsha"}`]+got[`escapement_redis_call_seconds_count{verb="script"}`] != 0 {
			t.Errorf("claims and calls: %v", got)
		}
		n.stop()
		if settled == 0 {
			t.Error("the user's hooks heard nothing")
		}
		time.Sleep(time.Minute)
		n = start(t, server.Client(), metrics.Config{}, nil, list[:3]...)
		defer n.stop()
		time.Sleep(time.Second)
		want(t, scrape(t, n.Collector), map[string]float64{ // what another process has done
			`escapement_ticks_total{escapement_job="once",outcome="succeeded"}`:    0,
			`escapement_job_last_success_timestamp_seconds{escapement_job="once"}`: float64(began.Unix() + 30),
		})
		time.Sleep(20 * time.Second)
		if missed := scrape(t, n.Collector)[`escapement_ticks_total{escapement_job="ok",outcome="missed"}`]; missed < 4 || missed > 6 {
			t.Errorf("%v ticks missed in a minute without a node", missed)
		}
	})
}

// A registry that checks every series has nothing against the collector's.
func TestSeriesAreSound(t *testing.T) {
	bubble(t, func(t *testing.T, server *redistest.Embedded) {
		n := start(t, server.Client(), metrics.Config{Jobs: 1, Labels: prometheus.Labels{metrics.NodeLabel: `a "b"\c`}}, nil, job("b", succeeds), job("a", fails))
		time.Sleep(25 * time.Second)
		n.stop()
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(n.Collector)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if !slices.Contains(metrics.Names(), f.GetName()) {
				t.Errorf("Names lacks %s", f.GetName())
			}
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if !slices.Contains(ownLabels, l.GetName()) {
						t.Errorf("%s has a label %s: a scrape may rename it, and ownLabels lacks it", f.GetName(), l.GetName())
					}
				}
			}
		}
		if len(families) != len(metrics.Names()) {
			t.Errorf("%d families, want %v", len(families), metrics.Names())
		}
		problems, err := testutil.GatherAndLint(reg)
		if err != nil || len(problems) > 0 {
			t.Errorf("lint: %v %v", problems, err)
		}
		native := protobuf(t, n.Collector)
		if len(native) < len(families) {
			t.Errorf("%d families in protobuf, want more than %d", len(native), len(families))
		}
		for _, f := range native {
			h := f.GetMetric()[0].GetHistogram()
			if strings.HasPrefix(f.GetName(), "escapement") && h != nil && (h.Schema == nil || len(h.GetBucket()) == 0) {
				t.Errorf("%s lacks native or classic buckets", f.GetName())
			}
		}
	})
}

// A program's label that a scrape renames is logged, with the name that Prometheus gives to it.
func TestLabelsThatAScrapeRenames(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	metrics.New(metrics.Config{Logger: logger, Labels: prometheus.Labels{"job": "a", "exported_node": "b", metrics.NodeLabel: "c", "colour": "d"}})
	text := log.String()
	if lines := strings.Count(text, "\n"); lines != 2 || !strings.Contains(text, "label=job renamed=exported_job") || !strings.Contains(text, "label=exported_node") {
		t.Errorf("logged: %s", text)
	}
}

// Of three jobs one has series of its own. A job that goes away gives its place to another one.
func TestBound(t *testing.T) {
	bubble(t, func(t *testing.T, server *redistest.Embedded) {
		began := time.Now()
		n := start(t, server.Client(), metrics.Config{Jobs: 1}, nil, job("a", succeeds), job("b", succeeds), job("c", fails))
		defer n.stop()
		time.Sleep(25 * time.Second)
		got := scrape(t, n.Collector)
		want(t, got, map[string]float64{
			`escapement_ticks_total{escapement_job="a",outcome="succeeded"}`: 2,
			`escapement_ticks_total{escapement_job="",outcome="succeeded"}`:  2,
			`escapement_ticks_total{escapement_job="",outcome="failed"}`:     2,
			`escapement_run_lag_seconds_count`:                               6,
		})
		names := func(got map[string]float64) (list []string) {
			for series := range got {
				if _, name, of := strings.Cut(series, `escapement_job="`); of {
					name, _, _ = strings.Cut(name, `"`)
					list = append(list, name)
				}
			}
			slices.Sort(list)
			return slices.Compact(list)
		}
		if all := names(got); !slices.Equal(all, []string{"", "a"}) {
			t.Errorf("series of %q", all)
		}
		if err := n.node.Remove("a"); err != nil {
			t.Fatal(err)
		}
		if all := names(scrape(t, n.Collector)); !slices.Equal(all, []string{"", "b"}) {
			t.Errorf("series of %q after a was removed", all)
		}
		time.Sleep(time.Second)
		want(t, scrape(t, n.Collector), map[string]float64{ // read from the ledger: it ran before it had series
			`escapement_ticks_total{escapement_job="b",outcome="succeeded"}`:    0,
			`escapement_job_last_success_timestamp_seconds{escapement_job="b"}`: float64(began.Unix() + 20),
		})
	})
}

// A node learns of the successes of other nodes: their own series end with them.
func TestSuccessesOfOtherNodes(t *testing.T) {
	bubble(t, func(t *testing.T, server *redistest.Embedded) {
		hand := jobs.Job{Name: "hand", Schedule: "0 0 1 1 *", Func: succeeds}
		n := start(t, server.Client(), metrics.Config{}, nil, hand)
		defer n.stop()
		other := metrics.New(metrics.Config{})
		other.Watch(n.node) // has the job and no hooks, as a node that did not run it
		client := server.Client()
		defer func() { _ = client.Close() }()
		admin, err := ops.New(client, "")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- other.Run(ctx, admin) }()
		const series = `escapement_job_last_success_timestamp_seconds{escapement_job="hand"}`
		time.Sleep(time.Minute)
		want(t, scrape(t, other), map[string]float64{series: 0})
		at := time.Now()
		if _, err := admin.Trigger(t.Context(), "hand", ops.TriggerOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if got := scrape(t, other)[series]; got < float64(at.Unix()) {
			t.Errorf("last success %v ten minutes after one at %d", got, at.Unix())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Redis goes away and comes back: it is down meanwhile, the run's lease is lost, and claims go
// unanswered.
func TestOutage(t *testing.T) {
	bubble(t, func(t *testing.T, server *redistest.Embedded) {
		var network redistest.Net
		client := network.Client(server.Options())
		long := job("long", func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			return ctx.Err()
		})
		n := start(t, client, metrics.Config{}, nil, long)
		up := fmt.Sprintf(`escapement_redis_up{master=%q}`, client.Options().Addr)
		time.Sleep(15 * time.Second)
		network.Cut()
		time.Sleep(15 * time.Second)
		want(t, scrape(t, n.Collector), map[string]float64{up: 0, `escapement_node_ready`: 0, `escapement_lease_lost_total`: 1})
		network.Heal()
		time.Sleep(5 * time.Second)
		want(t, scrape(t, n.Collector), map[string]float64{up: 1, `escapement_node_ready`: 1})
		n.stop()
	})
}
