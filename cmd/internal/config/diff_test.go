package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
)

// TestCompareJobs expects the settings of each job that differ, a secret by its name alone, and no
// difference between two ways to write one value.
func TestCompareJobs(t *testing.T) {
	compare := func(was, is string) (c JobsChange, settings []string) {
		t.Helper()
		a, err := Load(Source{File: testkit.Write(t, was)})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Load(Source{File: testkit.Write(t, is)})
		if err != nil {
			t.Fatal(err)
		}
		return CompareJobs(&a.Config, &b.Config), ChangedSettings(&a.Config, &b.Config)
	}
	for _, tt := range []struct{ name, was, is, want string }{
		{"nothing", "schedule: '@hourly', exec: {command: [x]}", "exec: {command: [x]}, schedule: '@hourly', overlap: skip, ttl: 15s, labels: {}", ""},
		{"a schedule", "schedule: '@hourly', exec: {command: [x]}", "schedule: '@daily', exec: {command: [x]}", `schedule "@hourly" -> "@daily"`},
		{"times", "schedule: '@hourly', exec: {command: [x]}", "schedule: '@hourly', ttl: 1m, timeout: 10m, exec: {command: [x]}", `timeout 0s -> 10m, ttl 15s -> 1m`},
		{"words", "schedule: '@hourly', exec: {command: [x]}", "schedule: '@hourly', overlap: queue, retry: {max: 2, 'on': other_node}, exec: {command: [x]}", `overlap "skip" -> "queue", retry.max 0 -> 2, retry.on "same_node" -> "other_node"`},
		{"lists", "schedule: '@hourly', exec: {command: [x]}", "schedule: '@hourly', shards: 2, params: [a, b], labels: {c: d}, start_at: '2026-12-24T09:00:00+01:00', exec: {command: [x]}", `start_at "" -> "2026-12-24T08:00:00Z", shards 0 -> 2, params [] -> [a b], labels map[] -> map[c:d]`},
		{"a folder", "schedule: '@hourly', exec: {command: [x]}", "schedule: '@hourly', exec: {command: [x], dir: /}", `exec.dir "" -> "/"`},
		{"a command", "schedule: '@hourly', exec: {command: [x]}", "schedule: '@hourly', exec: {command: [x, y]}", `exec.command changed`},
		{"another work", "schedule: '@hourly', exec: {command: [x]}", "schedule: '@hourly', http: {url: 'http://127.0.0.1/hunter2'}", `exec removed, http added`},
		{"a secret", "schedule: '@hourly', exec: {command: [x], env: {A: hunter2}}", "schedule: '@hourly', exec: {command: [x], env: {A: hunter3}}", `exec.env changed`},
		{"a call", "schedule: '@hourly', http: {url: 'http://127.0.0.1/hunter2'}", "schedule: '@hourly', http: {url: 'http://127.0.0.1/hunter3', method: POST}", `http.method changed, http.url changed`},
	} {
		c, settings := compare("jobs:\n  - {name: x, "+tt.was+"}\n", "jobs:\n  - {name: x, "+tt.is+"}\n")
		var got string
		if len(c.Changed) > 0 {
			got = strings.Join(c.Changed[0].what, ", ")
		}
		if got != tt.want || len(c.Added)+len(c.Removed)+len(settings) > 0 || c.Empty() != (tt.want == "") {
			t.Errorf("%s: %q, want %q; %+v %v", tt.name, got, tt.want, c, settings)
		}
	}
	c, settings := compare("node: {weight: 2, revision: a}\ndefaults: {ttl: 20s}\n"+testkit.JobsOf("stays")+"  - {name: goes, schedule: '@hourly', ttl: 15s, exec: {command: [x]}}\n",
		"node: {labels: {a: b}, revision: b}\nredis: {url: 'redis://:hunter2@127.0.0.1'}\nnotify: {targets: [{name: x, command: [y]}]}\n"+testkit.JobsOf("stays")+
			"  - {name: goes, schedule: '@hourly', exec: {command: [x]}}\n  - {name: comes, schedule: '@hourly', exec: {command: [x]}}\n")
	if got := strings.Join(settings, " "); got != "redis.url node.labels node.weight notify.targets" {
		t.Errorf("settings %s", got)
	}
	if len(c.Changed) != 1 || c.Changed[0].job != "stays" || !slices.Equal(c.Changed[0].what, []string{"ttl 20s -> 15s"}) || len(c.Added) != 1 || c.Added[0].job != "comes" || len(c.Removed) != 0 {
		t.Errorf("with defaults that change: %+v", c)
	}
}

// TestKnownPath expects the part of a path that consists of names of settings.
func TestKnownPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"redis.url": "redis.url", "redis.hunter2": "redis", "jobs[a].retry.max": "jobs[a].retry.max", "jobs[a].retry.hunter2": "jobs[a].retry",
		"jobs[hunter2].ttl": "jobs[...].ttl", "jobs[3].except[0]": "jobs[3].except[0]", "jobs[a].labels.hunter2": "jobs[a].labels",
		"jobs[a].http.url": "jobs[a].http.url", "jobs[a].exec.env.hunter2": "jobs[a].exec.env", "jobs[a].hunter2": "jobs[a]", "jobs[a].hunter2.max": "jobs[a]",
	} {
		if got := knownPath(path, reflect.TypeFor[Config](), []jobs.Job{{Name: "a"}}); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
