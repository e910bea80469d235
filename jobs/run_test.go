package jobs_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
)

func TestRun(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	payload := []byte("hello")
	tick := time.Date(2026, 3, 1, 12, 0, 0, 5e6, berlin)
	r := jobs.NewRun(jobs.RunInfo{ID: "r1", Job: "report", Tick: tick, Shard: 1, Shards: 2, Attempt: 3, Try: 4,
		Token: 5, Node: "a1", Trigger: jobs.TriggerManual, Param: "p", Payload: payload})
	payload[0] = 'j'
	got := fmt.Sprintln(r.ID(), r.Job(), r.Tick(), r.Shard(), r.Shards(), r.Attempt(), r.Try(), r.Token(), r.Node(),
		r.Trigger(), r.Param(), string(r.Payload()))
	want := fmt.Sprintln("r1", "report", "2026-03-01 11:00:00.005 +0000 UTC", 1, 2, 3, 4, int64(5), "a1",
		jobs.TriggerManual, "p", "hello")
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.Payload()[0] = 'x'
	if string(r.Payload()) != "hello" {
		t.Error("the payload can be changed from outside")
	}
	least := jobs.NewRun(jobs.RunInfo{})
	if least.Shards() != 1 || least.Attempt() != 1 || least.Try() != 1 || !least.Tick().IsZero() || least.Payload() != nil {
		t.Errorf("the least run: %+v", least)
	}
}

func TestRunKeepsTheEndOfItsOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, all := jobs.NewRun(jobs.RunInfo{}), []byte(nil)
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, jobs.MaxOutput*3/2), 0, 5).Draw(t, "writes") {
			p := bytes.Repeat([]byte{byte('a' + i)}, n)
			if wrote, err := r.Output().Write(p); wrote != n || err != nil {
				t.Fatalf("%d bytes are written as %d, %v", n, wrote, err)
			}
			all = append(all, p...)
		}
		if want := all[max(0, len(all)-jobs.MaxOutput):]; !bytes.Equal(r.Written(), want) || len(want) == 0 && r.Written() != nil {
			t.Fatalf("%d bytes are kept of %d", len(r.Written()), len(all))
		}
	})
	r := jobs.NewRun(jobs.RunInfo{})
	fmt.Fprint(r.Output(), "xyz")
	r.Written()[0] = 'y'
	if string(r.Written()) != "xyz" {
		t.Error("the output can be changed from outside")
	}
}

func TestPermanent(t *testing.T) {
	cause := errors.New("no such account")
	marked := jobs.Permanent(fmt.Errorf("settling: %w", cause))
	if marked.Error() != "settling: no such account" || !errors.Is(marked, cause) {
		t.Errorf("marked: %v", marked)
	}
	for name, err := range map[string]error{
		"itself": marked, "twice": jobs.Permanent(marked), "wrapped": fmt.Errorf("job: %w", marked), "joined": errors.Join(cause, marked),
	} {
		if !jobs.IsPermanent(err) {
			t.Errorf("%s: %v is not permanent", name, err)
		}
	}
	for _, err := range []error{nil, cause, errors.Join(cause), jobs.ErrTimeout, jobs.ErrCancelled, jobs.ErrReplaced} {
		if jobs.IsPermanent(err) {
			t.Errorf("%v is permanent", err)
		}
	}
	if err := jobs.Permanent(nil); err != nil {
		t.Errorf("nothing is marked as %v", err)
	}
}

func TestTraceparent(t *testing.T) {
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	good := "00-" + trace + "-" + parent + "-01"
	outer := jobs.WithTraceparent(t.Context(), good)
	if got := jobs.Traceparent(outer); got != good {
		t.Errorf("got %q, want %q", got, good)
	}
	for _, bad := range []string{
		"", good + "\n", " " + good, good + "-x", "00-" + trace + "-" + parent, "ff-" + trace + "-" + parent + "-01",
		"01-" + trace + "-" + parent + "-01", "00-4BF92F3577b34da6a3ce929d0e0e4736-" + parent + "-01",
		"00-00000000000000000000000000000000-" + parent + "-01", "00-" + trace + "-0000000000000000-01",
		"00-" + trace + "-" + parent + "-1\r\nX: y",
	} {
		if got := jobs.Traceparent(jobs.WithTraceparent(t.Context(), bad)); got != "" {
			t.Errorf("%q is carried", bad)
		}
		if got := jobs.Traceparent(jobs.WithTraceparent(outer, bad)); got != good {
			t.Errorf("%q replaces a good one by %q", bad, got)
		}
	}
}

func TestTryTimeoutRefuses(t *testing.T) {
	for _, c := range []struct {
		timeout time.Duration
		retry   jobs.Retry
		want    string // "" for a good job
	}{
		{time.Minute, jobs.Retry{Max: 1, Timeout: time.Minute - time.Millisecond}, ""},
		{0, jobs.Retry{Max: 1, Timeout: time.Hour}, ""},
		{time.Minute, jobs.Retry{Max: 1, Timeout: time.Minute}, "1m is not below timeout, 1m, which covers all tries"},
		{time.Minute, jobs.Retry{Timeout: time.Second}, "1s is only used with retry.max above 0; set that or leave this out"},
		{0, jobs.Retry{Max: 1, Timeout: -time.Second}, "-1s is negative; use 0 or more"},
		{0, jobs.Retry{Max: 1, Timeout: time.Microsecond}, "1µs is not a whole number of milliseconds"},
	} {
		err := jobs.Job{Name: "a", Schedule: "@daily", Func: nothing, Timeout: c.timeout, Retry: c.retry}.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || fmt.Sprint(faultsOf(t, err)) != "[retry.try_timeout]" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, %+v: %v, want %q", c.timeout, c.retry, err, c.want)
		}
	}
}
