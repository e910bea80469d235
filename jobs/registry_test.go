package jobs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func TestRegistry(t *testing.T) {
	var reg jobs.Registry // the zero value is an empty one
	if _, ok := reg.Get("a"); ok || len(reg.All()) != 0 || reg.Check() != nil {
		t.Error("it is not empty")
	}
	for _, name := range []string{"c", "a", "B", "b"} {
		j := good()
		j.Name = name
		if err := reg.Add(j); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, j := range reg.All() {
		names = append(names, j.Name)
	}
	if got := strings.Join(names, " "); got != "B a b c" {
		t.Errorf("all: %s", got)
	}
	j, ok := reg.Get("a")
	if !ok || j.TTL != 15*time.Second || j.TimeZone != "UTC" || j.Shards != 1 || j.Func == nil {
		t.Errorf("a: %v %+v", ok, j)
	}
	if j, ok := reg.Get("d"); ok || j.Name != "" {
		t.Errorf("d: %v %+v", ok, j)
	}
}

func TestRegistryRefuses(t *testing.T) {
	reg := jobs.NewRegistry()
	reg.MustAdd(good())
	if err := reg.Add(good()); !errors.Is(err, jobs.ErrDuplicate) || !strings.Contains(err.Error(), `job "report"`) {
		t.Errorf("the same name again: %v", err)
	}
	bad := good()
	bad.Name, bad.TTL = "other", time.Second
	var field *jobs.FieldError
	if err := reg.Add(bad); !errors.As(err, &field) || field.Field != "ttl" || !strings.Contains(err.Error(), `job "other"`) {
		t.Errorf("a short ttl: %v", err)
	}
	if len(reg.All()) != 1 {
		t.Errorf("%d jobs, want 1", len(reg.All()))
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, jobs.ErrDuplicate) {
			t.Errorf("MustAdd panics with %v", err)
		}
	}()
	reg.MustAdd(good())
}

func TestRegistryKeepsItsOwnCopy(t *testing.T) {
	reg := jobs.NewRegistry()
	labels := map[string]string{"disk": "ssd"}
	j := good()
	j.Labels = labels
	reg.MustAdd(j)
	labels["disk"] = "tape"
	first, _ := reg.Get("report")
	first.Labels["disk"] = "drum"
	reg.All()[0].Labels["disk"] = "wax"
	if again, _ := reg.Get("report"); again.Labels["disk"] != "ssd" {
		t.Errorf("the label is %q now", again.Labels["disk"])
	}
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	const each = 50
	reg := jobs.NewRegistry()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range each {
				j := good()
				j.Name = fmt.Sprintf("job-%d-%d", g, i)
				if err := reg.Add(j); err != nil {
					t.Error(err)
				}
				reg.Get(j.Name)
				if !slices.IsSortedFunc(reg.All(), func(a, b jobs.Job) int { return strings.Compare(a.Name, b.Name) }) {
					t.Error("not sorted")
				}
			}
		})
	}
	wg.Wait()
	if len(reg.All()) != 4*each {
		t.Errorf("%d jobs, want %d", len(reg.All()), 4*each)
	}
}
