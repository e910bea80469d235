package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// job is a job of a scenario: a command, or an HTTP call.
type job struct {
	name     string
	schedule string
	lasts    bool   // its runs also write when they end
	work     string // shell, between start and end
}

const always = "* * * * * *"

// everySecond makes n jobs that do nothing but write.
func everySecond(n int) []job {
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = job{name: fmt.Sprintf("each-%02d", i+1), schedule: always}
	}
	return jobs
}

// slow is a job whose runs last, but end before the next tick even if they start a second late.
func slow(name string) job {
	return job{name: name, schedule: "*/3 * * * * *", lasts: true, work: "sleep 1.2"}
}

// long is a job whose runs take d, first at the given instant's second of the minute and again 30 s
// later. They end early when the file $ALIVE is gone, so that none outlives its scenario. A file
// beside it, with the run's id behind the name, was changed by the last step.
func long(first time.Time, d time.Duration) job {
	at := first.Unix() % 60
	return job{
		name: "long", schedule: fmt.Sprintf("%d,%d * * * * *", at, (at+30)%60), lasts: true,
		work: fmt.Sprintf(`i=0; while [ -e "$ALIVE" ] && [ $i -lt %d ]; do : >>"$ALIVE.$ESCAPEMENT_RUN"; sleep 0.1; i=$((i+1)); done`, int(d/(100*time.Millisecond))),
	}
}

// script is the job's shell script. The line is one write: the shell's own printf collects it.
func (j job) script() string {
	say := `say() { printf '%s %s %s %s %s %s %s\n' "$ESCAPEMENT_JOB" "$ESCAPEMENT_TICK" "$ESCAPEMENT_TOKEN" ` +
		`"$ESCAPEMENT_NODE" "$ESCAPEMENT_RUN" "$1" "$(date +%s%N)" >>"$SINK"; }; say ` + string(judge.Start)
	if !j.lasts {
		return say
	}
	return say + "; " + j.work + "; say " + string(judge.End)
}

// settings are the parts of the nodes' configuration that scenarios choose.
type settings struct {
	jobs  []job
	ttl   time.Duration
	drain time.Duration
	posts bool   // the jobs are HTTP calls, to
	url   string // which the stage fills in

	sentinel    bool           // Redis is watched by sentinels
	sharded     bool           // Redis is a Cluster
	clusterArgs []string       // of its servers
	confirm     bool           // replicas confirm grants
	section     map[string]any // redis section of the configuration; nil: flags name the server
}

// entry is a job's part of a configuration.
func (c settings) entry(j job, sink, alive string) map[string]any {
	type m = map[string]any
	e := m{"name": j.name, "schedule": j.schedule}
	if c.posts {
		e["http"] = m{"url": c.url}
	} else {
		e["exec"] = m{"command": []string{"sh", "-c", j.script()}, "env": m{"SINK": sink, "ALIVE": alive}}
	}
	return e
}

// writeConfig writes a configuration for nodes of a scenario.
func (c settings) writeConfig(path, sink, alive string) error {
	type m = map[string]any
	var list []m
	for _, j := range c.jobs {
		list = append(list, c.entry(j, sink, alive))
	}
	all := m{
		"node":     m{"drain_timeout": c.drain.String()},
		"http":     m{"listen": "127.0.0.1:0"},
		"log":      m{"format": "json"},
		"history":  m{"keep": 2000},
		"defaults": m{"ttl": c.ttl.String()},
		"jobs":     list,
	}
	if c.section != nil {
		all["redis"] = c.section
		if c.confirm {
			c.section["confirm"] = "replicas"
		}
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// environment is this process's without the settings of nodes, and with the given ones.
func environment(more ...string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "ESCAPEMENT_") {
			env = append(env, kv)
		}
	}
	return append(env, more...)
}

// percent is part of whole, as text.
func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return strconv.Itoa(int(100*float64(part)/float64(whole)+0.5)) + "%"
}
