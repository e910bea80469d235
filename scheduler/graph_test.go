package scheduler_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/ops"
)

// defineJobs stores definitions in a namespace, as a node does. change edits the text of each.
func defineJobs(tb testing.TB, client redis.UniversalClient, list []jobs.Job, change func(job, text string) string) {
	tb.Helper()
	l, err := ledger.Join(tb.Context(), client, ledger.Config{Namespace: "escapement", Partitions: 16})
	if err != nil {
		tb.Fatal(err)
	}
	parts := make(map[int][]define.Definition)
	for _, j := range list {
		d := j.Definition()
		text, err := json.Marshal(d)
		if err != nil {
			tb.Fatal(err)
		}
		def := define.Definition{Job: j.Name, Digest: d.Digest(), Text: []byte(change(j.Name, string(text)))}
		if schedule, err := j.ParsedSchedule(); err != nil {
			tb.Fatal(err)
		} else if schedule != nil {
			def.Cursor = schedule.Next(time.Now()).UnixMilli()
		}
		parts[l.Partition(j.Name)] = append(parts[l.Partition(j.Name)], def)
	}
	for _, part := range parts {
		for some := range slices.Chunk(part, 500) {
			if _, err := define.Define(tb.Context(), l, time.Now().UnixMilli(), some); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// TestGraph: the graph has each follower and each upstream once, also where jobs wait for each
// other. Of the jobs in an unknown format, the possible members of the graph are named, and no
// other job is parsed.
func TestGraph(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		job := func(name string, after ...string) jobs.Job {
			j := jobs.Job{Name: name, After: after}
			if len(after) == 0 {
				j.Schedule = "@yearly"
			}
			return j
		}
		newer := map[string]bool{"alone-newer": true, "follower-newer": true, "upstream-newer": true}
		list := []jobs.Job{job("alone"), job("first"), job("second", "first"), job("third", "second", "first"), job("a", "b"), job("b", "a"), job("last", "gone"),
			job("alone-newer"), job("follower-newer", "first"), job("upstream-newer"), job("reader", "upstream-newer")}
		defineJobs(t, c.redis(), list, func(job, text string) string {
			if newer[job] {
				return strings.Replace(text, `"v":1`, `"v":99`, 1)
			}
			return text
		})
		graph, err := c.ops().Graph(t.Context())
		var got []string
		for _, j := range graph {
			got = append(got, fmt.Sprintf("%s after %v, before %v", j.Name, j.After, j.Followers))
		}
		want := []string{"a after [b], before [b]", "b after [a], before [a]", "first after [], before [second third]", "last after [gone], before []",
			"reader after [upstream-newer], before []", "second after [first], before [third]", "third after [second first], before []"}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if n := strings.Count(fmt.Sprint(err), "format 99"); n != 2 {
			t.Errorf("%d definitions were refused, want 2, of a follower and of an upstream: %v", n, err)
		}
	})
}

// BenchmarkGraph reads the graph of 30,000 jobs of which none follows another.
func BenchmarkGraph(b *testing.B) {
	client := redistest.Start(b).Client(b)
	var list []jobs.Job
	for i := range 30_000 {
		payload := fmt.Appendf(nil, `{"tenant": %d}`, i)
		list = append(list, jobs.Job{Name: fmt.Sprint("tenants/report-", i), Schedule: "H H * * *", Handler: "report", Payload: payload})
	}
	defineJobs(b, client, list, func(_, text string) string { return text })
	admin, err := ops.New(client, "")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if graph, err := admin.Graph(b.Context()); err != nil || len(graph) > 0 {
			b.Fatal(len(graph), err)
		}
	}
}
