package metrics_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/metrics"
)

// scrapeEnv makes this program scrape the address once a second until its input ends, in place of testing: so that what a
// scraper costs counts elsewhere.
const scrapeEnv = "METRICS_TEST_SCRAPE"

func scraper(url string) {
	go func() {
		for range time.Tick(time.Second) {
			if resp, err := http.Get(url); err == nil { //nolint:noctx // it ends with the process
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// everySecond are jobs that tick each second and do nothing.
func everySecond(n int) (list []jobs.Job) {
	for i := range n {
		list = append(list, jobs.Job{Name: fmt.Sprintf("job-%04d", i), Schedule: "* * * * * *", Func: succeeds})
	}
	return list
}

// BenchmarkSecond is a second of a node that runs 1,000 jobs a second: without metrics, with a collector, and with a scrape each
// second. ms/s is the processor time of the node's process. What Redis and the scraper take is not in it.
func BenchmarkSecond(b *testing.B) {
	for _, of := range []struct {
		name             string
		watched, scraped bool
	}{{"bare", false, false}, {"watched", true, false}, {"scraped", true, true}} {
		b.Run(of.name, func(b *testing.B) {
			client := redistest.Start(b).Client(b)
			m := metrics.New(metrics.Config{})
			cfg := scheduler.Config{Name: "a", MaxRunning: 2000, Logger: slog.New(slog.DiscardHandler)}
			if of.watched {
				cfg.Hooks = m.Hooks()
				client.AddHook(m.RedisHook())
			}
			reg := jobs.NewRegistry()
			for _, j := range everySecond(1000) {
				reg.MustAdd(j)
			}
			node, err := scheduler.New(client, reg, cfg)
			if err != nil {
				b.Fatal(err)
			}
			m.Watch(node)
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- node.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-ended; err != nil {
					b.Error(err)
				}
			}()
			if of.scraped {
				serve := httptest.NewServer(metrics.Handler(m))
				defer serve.Close()
				other := exec.Command(os.Args[0])
				other.Env = append(os.Environ(), scrapeEnv+"="+serve.URL)
				in, err := other.StdinPipe()
				if err == nil {
					err = other.Start()
				}
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = in.Close(); _ = other.Wait() }()
			}
			for node.Stats().Claims["granted"] < 2000 { // all registered, and warm
				time.Sleep(100 * time.Millisecond)
			}
			b.ResetTimer()
			runs, used := node.Stats().Claims["granted"], processorTime(b)
			for b.Loop() {
				time.Sleep(time.Second)
			}
			b.ReportMetric(float64((processorTime(b)-used).Microseconds())/1000/float64(b.N), "ms/s")
			b.ReportMetric(float64(node.Stats().Claims["granted"]-runs)/float64(b.N), "runs/s")
		})
	}
}

// BenchmarkScrape is one scrape of 1,000 jobs that have run.
func BenchmarkScrape(b *testing.B) {
	m := withRuns(b, 1000)
	h := metrics.Handler(m)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(devNull{http.Header{}}, httptest.NewRequestWithContext(b.Context(), "GET", "/metrics", nil))
	}
}

// BenchmarkSettled is what an event of a run costs.
func BenchmarkSettled(b *testing.B) {
	m := withRuns(b, 1000)
	settled := m.Hooks().Settled
	b.ReportAllocs()
	for b.Loop() {
		settled(event("job-0500"))
	}
}

// withRuns is a collector of a node with jobs that have run, each with other durations.
func withRuns(b *testing.B, n int) *metrics.Collector {
	_, client := redistest.StartEmbedded(b)
	reg := jobs.NewRegistry()
	for _, j := range everySecond(n) {
		reg.MustAdd(j)
	}
	node, err := scheduler.New(client, reg, scheduler.Config{Name: "a"})
	if err != nil {
		b.Fatal(err)
	}
	m := metrics.New(metrics.Config{})
	m.Watch(node)
	for name := range node.JobNames() {
		for i := range 20 {
			e := event(name)
			e.Lag, e.Duration = e.Lag*time.Duration(i+10)/10, e.Duration*time.Duration(i+10)/10
			m.Hooks().Settled(e)
		}
	}
	return m
}

func event(job string) scheduler.SettledEvent {
	return scheduler.SettledEvent{
		RunEvent: scheduler.RunEvent{Job: job, Tick: time.Unix(1e9, 0), Shards: 1, Lag: 2 * time.Millisecond},
		Outcome:  jobs.OutcomeSucceeded, Duration: 3 * time.Millisecond, Tries: 1, Recorded: true,
	}
}

// devNull is a client that reads nothing.
type devNull struct{ header http.Header }

func (d devNull) Header() http.Header         { return d.header }
func (d devNull) WriteHeader(int)             {}
func (d devNull) Write(p []byte) (int, error) { return len(p), nil }

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
