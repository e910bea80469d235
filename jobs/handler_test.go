package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
)

// A job that names a handler gets its function; what cannot work is refused with its field.
func TestHandlers(t *testing.T) {
	ran := errors.New("ran")
	reg := jobs.NewRegistry()
	if err := reg.Handle("report", func(context.Context, *jobs.Run) error { return ran }); err != nil {
		t.Fatal(err)
	}
	if err := reg.Add(jobs.Job{Name: "a", Schedule: "@hourly", Handler: "report", Payload: []byte(`{"tenant": 7}`)}); err != nil {
		t.Fatal(err)
	}
	j, _ := reg.Get("a")
	if err := j.Func(t.Context(), nil); !errors.Is(err, ran) {
		t.Errorf("it calls another function: %v", err)
	}
	d, err := jobs.ParseDefinition([]byte(`{"v":1,"name":"a","schedule":"@hourly","time_zone":"UTC","ttl_ms":15000,"handler":"report","payload":{"tenant":7}}`))
	if err != nil || d.Digest() != j.Definition().Digest() || d.Job.Handler != "report" || string(d.Job.Payload) != `{"tenant":7}` {
		t.Errorf("%v: %+v and %+v", err, d, j.Definition())
	}
	for want, bad := range map[string]jobs.Job{
		`handler: there is no handler "reprot" here`: {Handler: "reprot"},
		`handler: "a b" is not a name`:               {Handler: "a b"},
		"payload: is no JSON":                        {Handler: "report", Payload: []byte("{")},
		`managed_by: "a b" is not a name`:            {Handler: "report", ManagedBy: "a b"},
		"managed_by: is only used with handler":      {ManagedBy: "tenants", Func: func(context.Context, *jobs.Run) error { return nil }},
		"payload: 20000 bytes are more than 16384":   {Handler: "report", Payload: []byte(strings.Repeat("1", 20000))},
		"payload: is only used with handler":         {Func: j.Func, Payload: []byte("1")},
	} {
		bad.Name, bad.Schedule = "b", "@hourly"
		if err := reg.Add(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for want, err := range map[string]error{
		"report is there already":         reg.Handle("report", j.Func),
		"mail has no function":            reg.Handle("mail", nil),
		`"" is not a handler's name; use`: reg.Handle("", j.Func),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
