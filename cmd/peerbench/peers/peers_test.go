package peers

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

func TestTeller(t *testing.T) {
	told := &teller{schedule: cron.Every(time.Second)}
	at := time.Unix(100, 0)
	told.Next(at) // the runner computes the first tick, then calls the job and computes the next
	told.Next(at.Add(time.Second))
	if got := told.tick().Unix(); got != 101 {
		t.Errorf("the first call is of tick %d, want 101", got)
	}
	told.Next(at.Add(3500 * time.Millisecond)) // late: ticks 102 and 103 passed at once
	if got := told.tick().Unix(); got != 102 {
		t.Errorf("the second call is of tick %d, want 102", got)
	}
	if got := told.tick().Unix(); got != 104 {
		t.Errorf("the third call is of tick %d, want 104", got)
	}
}

func TestPayload(t *testing.T) {
	payload := encodeJob(9999)
	encodeTick(payload, time.Unix(1_795_000_000, 999))
	if job, tick := decode(payload); job != 9999 || tick.Unix() != 1_795_000_000 || tick.Nanosecond() != 0 {
		t.Errorf("got job %d, tick %s", job, tick)
	}
}

func TestNamesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		if seen[p.Name] || seen[p.Title] {
			t.Errorf("there are two of %s, %s", p.Name, p.Title)
		}
		seen[p.Name], seen[p.Title] = true, true
		if got, ok := Find(p.Name); !ok || got.Title != p.Title {
			t.Errorf("%s is not found", p.Name)
		}
	}
	if _, ok := Find("none"); ok {
		t.Error("a peer that there is not is found")
	}
}
