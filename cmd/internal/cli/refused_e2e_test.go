package cli

import (
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// TestRefusedReloadIsShown: a node whose changed files were refused says so to doctor and nodes list, without what is secret in them,
// until files are read again.
func TestRefusedReloadIsShown(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	env := []string{"ESCAPEMENT_REDIS_URL=redis://" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0"}
	config := write(t, jobsOf("first"))
	node := start(t, append([]string{"ESCAPEMENT_NODE_NAME=a"}, env...), "run", "--config", config)
	node.logged("node started")
	type finding struct{ Code, Severity, On, Text string }
	refused := func() (f finding) {
		_, out, _ := call(env, "", "doctor", "-o", "json")
		var all []finding
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatal(err, out)
		}
		for _, is := range all {
			if is.Code == "config_refused" {
				f = is
			}
		}
		return f
	}
	if f := refused(); f.Code != "" {
		t.Errorf("before: %+v", f)
	}
	put(t, config, "jobs:\n  - {name: first, schedule: '@hourly', timeout: 'redis://u:hunter2@host', exec: {command: [x]}}\n  - {name: b, exec: {env: {PASSWORD: [hunter2]}}}\n")
	node.signal(syscall.SIGHUP)
	var f finding
	eventually(t, "doctor tells", func() bool { f = refused(); return f.Code != "" })
	if want := config + `:2: jobs[first].timeout: `; f.Severity != "warning" || f.On != "a" || !strings.Contains(f.Text, want) || !strings.Contains(f.Text, " more)") {
		t.Errorf("%+v, want %s", f, want)
	}
	code, list, stderr := call(env, "", "nodes", "list", "-o", "wide")
	if code != exitDone || !strings.Contains(list, "configuration refused: "+config+":2: jobs[first].timeout: ") {
		t.Errorf("nodes list: %s%s", list, stderr)
	}
	_, all, _ := call(env, "", "nodes", "list", "-o", "json")
	if strings.Contains(f.Text+list+all, "hunter2") || !strings.Contains(all, `"config_refused": {`) {
		t.Errorf("%+v\n%s\n%s", f, list, all)
	}
	put(t, config, jobsOf("first"))
	node.signal(syscall.SIGHUP)
	eventually(t, "it is over", func() bool { return refused().Code == "" })
	node.signal(syscall.SIGTERM)
	node.exits(exitDone)
}

// TestRefusedReloadOutlivesTheNode: the node that takes a slot after a move says what the one before was refused.
func TestRefusedReloadOutlivesTheNode(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	r, config, _ := reloadable(t, jobsOf("first"))
	slot := r.slots[0]
	slot.at = endpoint{client: redis.Client(t)} // the one before does not run
	put(t, config, "jobs: [")
	r.reload()
	if err := slot.sit(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- slot.run(ctx) }()
	client, err := scheduler.NewClient(slot.at.client, "")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node says it", func() bool {
		nodes, _ := client.Nodes(ctx)
		return len(nodes) == 1 && nodes[0].ConfigRefused != nil && strings.HasPrefix(nodes[0].ConfigRefused.Text, config+":") && nodes[0].ConfigRefused.At != nil
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
