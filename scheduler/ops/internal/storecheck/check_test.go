package storecheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// namespace has the handlers report and typed, and the jobs that a test puts.
type namespace struct {
	*testing.T
	led *ledger.Ledger
}

func open(t *testing.T) namespace {
	t.Helper()
	server, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	t.Cleanup(func() { _ = client.Close(); server.Close() })
	led, err := ledger.Join(t.Context(), client, ledger.Config{MaxSkew: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	reg := jobs.NewRegistry()
	typed := func(context.Context, *jobs.Run, struct {
		Tenant int `json:"tenant"`
	}) error {
		return nil
	}
	if err := errors.Join(jobs.HandleTyped(reg, "typed", typed), catalog.DeclareHandlers(t.Context(), led, map[string]string{"report": "", "typed": reg.PayloadShape("typed")}, time.Now().UnixMilli())); err != nil {
		t.Fatal(err)
	}
	return namespace{t, led}
}

// program registers a job of a program.
func (n namespace) program(j jobs.Job) {
	n.Helper()
	d := j.Definition()
	text, err := json.Marshal(d)
	if err != nil {
		n.Fatal(err)
	}
	now := time.Now().UnixMilli()
	if got, err := define.Define(n.Context(), n.led, now, []define.Definition{{Job: j.Name, Digest: d.Digest(), Text: text, Cursor: now + time.Hour.Milliseconds()}}); err != nil {
		n.Fatal(got, err)
	}
}

// put stores jobs that pass the check, with their followers as nodes note them.
func (n namespace) put(list ...jobs.Job) error {
	n.Helper()
	ready, err := Check(n.Context(), n.led, list)
	if err != nil {
		return err
	}
	for _, j := range ready {
		text, err := json.Marshal(j.Definition())
		if err != nil {
			n.Fatal(err)
		}
		if _, err := catalog.Apply(n.Context(), n.led, []catalog.Change{{Job: j.Name, Definition: string(text)}}); err != nil {
			n.Fatal(err)
		}
		for _, upstream := range j.After {
			if err := follow.Follow(n.Context(), n.led, 0, upstream, j.Name); err != nil {
				n.Fatal(err)
			}
		}
	}
	return nil
}

// refused checks that jobs are refused with some words.
func (n namespace) refused(words string, list ...jobs.Job) {
	n.Helper()
	if err := n.put(list...); !errors.Is(err, ledger.ErrRefused) || !strings.Contains(err.Error(), words) {
		n.Errorf("%v, want %s", err, words)
	}
}

func tenant(i int) jobs.Job {
	return jobs.Job{Name: fmt.Sprint("tenant-", i), Schedule: "* * * * * *", TTL: 5 * time.Second, Handler: "report", Payload: []byte(`{"tenant": 7}`)}
}

// A wrong job is refused with the setting and the cure, beside a job that is right.
func TestRefused(t *testing.T) {
	n := open(t)
	n.program(jobs.Job{Name: "code", Schedule: "* * * * * *"})
	n.program(jobs.Job{Name: "slow", Schedule: "@daily"})
	for want, edit := range map[string]func(*jobs.Job){
		`handler: no node has declared a handler "reprot"; declared are report, typed`: func(j *jobs.Job) { j.Handler = "reprot" },
		"payload.tenant: is a JSON string":                                             func(j *jobs.Job) { j.Handler, j.Payload = "typed", []byte(`{"tenant": "7"}`) },
		"payload.id: is not a field of it":                                             func(j *jobs.Job) { j.Handler, j.Payload = "typed", []byte(`{"id": 7}`) },
		"handler: is missing":                                                          func(j *jobs.Job) { j.Handler, j.Payload = "", nil },
		`after: there is no job "cod", stored or of a program`:                         func(j *jobs.Job) { j.After, j.Schedule = []string{"cod"}, "" },
		`after: a job cannot run after itself`:                                         func(j *jobs.Job) { j.After, j.Schedule = []string{"tenant-2"}, "" },
		`they never end the same tick`:                                                 func(j *jobs.Job) { j.After, j.Schedule = []string{"tenant-1", "slow"}, "" },
		`schedule "61 * * * *": minute`:                                                func(j *jobs.Job) { j.Schedule = "61 * * * *" },
		"payload: is no JSON":                                                          func(j *jobs.Job) { j.Payload = []byte("{") },
		"a program has registered a job of that name":                                  func(j *jobs.Job) { j.Name = "code" },
		`put job tenant-1: it stands there twice`:                                      func(j *jobs.Job) { j.Name = "tenant-1" },
		`func: cannot be stored; leave it out`:                                         func(j *jobs.Job) { j.Func = func(context.Context, *jobs.Run) error { return nil } },
		`except[0]: "holidays" is not a date such as 2026-12-24; a stored job cannot name the calendars`: func(j *jobs.Job) { j.Except = []string{"holidays"} },
		`name: "a b" is not a name`: func(j *jobs.Job) { j.Name = "a b" },
	} {
		bad := tenant(2)
		edit(&bad)
		n.refused(want, tenant(1), bad)
	}
}

// Jobs of one group have one limit: the jobs of a call, and the stored jobs.
func TestLimits(t *testing.T) {
	n := open(t)
	job := func(i, most int) jobs.Job {
		j := tenant(i)
		j.Limit = jobs.Limit{Group: "db", Max: most}
		return j
	}
	n.refused(`put job tenant-2: limit.max: 3, and 2 at job "tenant-1"; give all jobs of group "db" the same`, job(1, 2), job(2, 3))
	for i := range 600 { // more than a page of the catalog
		if err := n.put(tenant(10 + i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.put(job(1, 2), job(2, 2)); err != nil {
		t.Fatal(err)
	}
	n.refused(`put job tenant-3: limit.max: 4, and 2 at job "tenant-`, job(3, 4))
	n.refused(`put job tenant-1: limit.max: 4, and 2 at job "tenant-2"`, job(1, 4))
	other := job(4, 4)
	other.Limit.Group = "mail"
	if err := errors.Join(n.put(job(3, 2)), n.put(other), n.put(job(1, 4), job(2, 4), job(3, 4))); err != nil {
		t.Error(err)
	}
}

// A changed schedule is compared with the schedules of the other upstreams of its followers; both
// put together pass. A chain without a first job is compared with nothing.
func TestFollowers(t *testing.T) {
	n := open(t)
	job := func(i int, schedule string, after ...string) jobs.Job {
		j := tenant(i)
		j.Schedule, j.After = schedule, after
		return j
	}
	if err := n.put(job(1, "@every 2s"), job(2, "@every 2s"), job(3, "", "tenant-1"), job(4, "", "tenant-3", "tenant-2")); err != nil {
		t.Fatal(err)
	}
	n.refused(`put: job tenant-4 follows what is put: job "tenant-4": after: `, job(1, "@every 3s"))
	n.refused("tenant-4", job(1, "@every 3s"), job(2, "@every 4s"))
	for _, list := range [][]jobs.Job{
		{job(1, "@every 3s"), job(2, "@every 3s")},
		{job(1, "@every 4s"), job(4, "", "tenant-3")},
		{job(1, "@every 5s")},
		{job(5, "@every 5s")},
	} {
		if err := n.put(list...); err != nil {
			t.Error(err)
		}
	}
	if _, err := catalog.Apply(t.Context(), n.led, []catalog.Change{{Job: "tenant-1"}}); err != nil {
		t.Fatal(err)
	}
	if err := n.put(job(6, "", "tenant-3", "tenant-5")); err != nil {
		t.Errorf("beside a chain whose beginning is gone: %v", err)
	}
}
