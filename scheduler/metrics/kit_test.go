package metrics_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/metrics"
	"github.com/escapement/escapement/scheduler/ops"
)

// bubble runs a test in virtual time, over the embedded Redis.
func bubble(t *testing.T, test func(t *testing.T, server *redistest.Embedded)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		test(t, server)
	})
}

// running is a node that works, with its collector.
type running struct {
	*metrics.Collector
	node *scheduler.Node
	stop func() // returns when the node has stopped
}

// start starts a node with these jobs.
func start(t *testing.T, client *redis.Client, cfg metrics.Config, own *scheduler.Hooks, list ...jobs.Job) running {
	t.Helper()
	m := metrics.New(cfg)
	client.AddHook(m.RedisHook())
	reg := jobs.NewRegistry()
	for _, j := range list {
		reg.MustAdd(j)
	}
	node, err := scheduler.New(client, reg, scheduler.Config{Name: "a", Hooks: scheduler.JoinHooks(m.Hooks(), nil, own), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m.Watch(node)
	admin, err := ops.New(client, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, read := make(chan error, 1), make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	go func() { read <- m.Run(ctx, admin) }()
	return running{m, node, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := <-read; err != nil {
			t.Error(err)
		}
		_ = client.Close()
	}}
}

// scrape is the answer to a scrape: values by series, without the lines of comments.
func scrape(t *testing.T, all ...*metrics.Collector) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler(all...).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("answered %d: %s", w.Code, w.Body)
	}
	return seriesOf(t, w.Body)
}

const protobufOnly = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// protobuf is the answer to a scraper that wants native histograms.
func protobuf(t *testing.T, all ...*metrics.Collector) (families []*dto.MetricFamily) {
	t.Helper()
	r, w := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil), httptest.NewRecorder()
	r.Header.Set("Accept", protobufOnly+";q=0.6,text/plain;version=0.0.4;q=0.2,*/*;q=0.1")
	metrics.Handler(all...).ServeHTTP(w, r)
	for d := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header())); ; {
		f := new(dto.MetricFamily)
		err := d.Decode(f)
		if errors.Is(err, io.EOF) {
			return families
		}
		if err != nil {
			t.Fatalf("answered %d: %v", w.Code, err)
		}
		families = append(families, f)
	}
}

// seriesOf reads the text format.
func seriesOf(t *testing.T, text io.Reader) map[string]float64 {
	t.Helper()
	series := make(map[string]float64)
	for s := bufio.NewScanner(text); s.Scan(); {
		line := s.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		series[line[:cut]] = value
	}
	return series
}

// want compares some series with what they should be.
func want(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for series, value := range want {
		if v, there := got[series]; !there || v != value {
			t.Errorf("%s: got %v (there: %t), want %v", series, v, there, value)
		}
	}
}
