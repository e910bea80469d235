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
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/metrics"
)

// scrapeEnv makes this program scrape the address once for each byte of its input, in place of
// testing: so that what a scraper costs counts elsewhere.
const scrapeEnv = "METRICS_TEST_SCRAPE"

func scraper(url string) {
	for one := make([]byte, 1); ; {
		if _, err := os.Stdin.Read(one); err != nil {
			return
		}
		if resp, err := http.Get(url); err == nil { //nolint:noctx // it ends with the process
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
}

// startScraper returns what makes another process scrape the address.
func startScraper(b *testing.B, url string) (scrape func()) {
	b.Helper()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), scrapeEnv+"="+url)
	in, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = other.Wait() })
	return func() {
		if _, err := in.Write([]byte{1}); err != nil {
			b.Error(err)
		}
	}
}

// everySecond are jobs that tick each second and do nothing.
func everySecond(n int) (list []jobs.Job) {
	for i := range n {
		list = append(list, jobs.Job{Name: fmt.Sprintf("job-%04d", i), Schedule: "* * * * * *", Func: succeeds})
	}
	return list
}

// BenchmarkSeconds is two seconds of a node that runs 1,000 jobs a second, the second with a
// scrape: without metrics, where no server can be scraped, and with a collector. ms/s is the
// processor time of the node's process in the first second, ms/scrape the additional time in the
// second. The time of Redis and the scraper is not included.
func BenchmarkSeconds(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(map[bool]string{false: "bare", true: "collected"}[with], func(b *testing.B) {
			client := redistest.Start(b).Client(b)
			m := metrics.New(metrics.Config{})
			cfg := scheduler.Config{Name: "a", MaxRunning: 2000, Logger: slog.New(slog.DiscardHandler)}
			scrape := func() {}
			if with {
				cfg.Hooks = m.Hooks()
				client.AddHook(m.RedisHook())
				server := httptest.NewServer(metrics.Handler(m))
				b.Cleanup(server.Close)
				scrape = startScraper(b, server.URL)
			}
			node := startNode(b, client, cfg, everySecond(1000))
			m.Watch(node)
			for node.Stats().Claims["granted"] < 3000 { // all registered, and warm
				time.Sleep(100 * time.Millisecond)
			}
			runs := node.Stats().Claims["granted"]
			var without, more []float64
			for b.Loop() {
				before := processorTime(b)
				time.Sleep(time.Second)
				between := processorTime(b)
				scrape()
				time.Sleep(time.Second)
				quiet, scraped := between-before, processorTime(b)-between
				without = append(without, float64(quiet.Microseconds())/1000)
				more = append(more, float64((scraped-quiet).Microseconds())/1000)
			}
			b.ReportMetric(median(without), "ms/s")
			b.ReportMetric(median(more), "ms/scrape")
			b.ReportMetric(float64(node.Stats().Claims["granted"]-runs)/float64(2*b.N), "runs/s")
		})
	}
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// startNode starts a node that stops with the benchmark.
func startNode(b *testing.B, client *redis.Client, cfg scheduler.Config, list []jobs.Job) *scheduler.Node {
	b.Helper()
	reg := jobs.NewRegistry()
	for _, j := range list {
		reg.MustAdd(j)
	}
	node, err := scheduler.New(client, reg, cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return node
}

// BenchmarkScrape is one scrape of jobs that have run; ms/scrape is processor time.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for _, tt := range []struct {
			name, accept string
			histograms   bool
		}{
			{"text", "text/plain", false}, {"text_with_histograms", "text/plain", true}, {"protobuf_with_histograms", protobufOnly, true},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, tt.name), func(b *testing.B) {
				h := metrics.Handler(withRuns(b, n, tt.histograms))
				r := httptest.NewRequestWithContext(b.Context(), "GET", "/metrics", nil)
				r.Header.Set("Accept", tt.accept)
				b.ReportAllocs()
				used := processorTime(b)
				for b.Loop() {
					h.ServeHTTP(devNull{http.Header{}}, r)
				}
				b.ReportMetric(float64((processorTime(b)-used).Microseconds())/1000/float64(b.N), "ms/scrape")
			})
		}
	}
}

// BenchmarkSettled is what an event of a run costs.
func BenchmarkSettled(b *testing.B) {
	m := withRuns(b, 1000, false)
	settled := m.Hooks().Settled
	b.ReportAllocs()
	for b.Loop() {
		settled(event("job-0500"))
	}
}

// withRuns is a collector of a node with jobs that have run, each with other durations.
func withRuns(b *testing.B, n int, histograms bool) *metrics.Collector {
	_, client := redistest.StartEmbedded(b)
	reg := jobs.NewRegistry()
	for _, j := range everySecond(n) {
		reg.MustAdd(j)
	}
	node, err := scheduler.New(client, reg, scheduler.Config{Name: "a"})
	if err != nil {
		b.Fatal(err)
	}
	m := metrics.New(metrics.Config{Jobs: n, JobHistograms: histograms})
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
