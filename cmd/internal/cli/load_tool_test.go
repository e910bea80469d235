package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
)

// Tools need only the connection: they work beside jobs that no node would take, and after a move
// from the same folder.
func TestToolsNeedTheConnection(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	files := func(text string) {
		t.Helper()
		for name, text := range map[string]string{config: text, filepath.Join(dir, "jobs.d", "z.yaml"): "jobs: [{name: z, schedule: nonsense}]\nnot: yaml: at all"} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	addr := p.Server.Addr()
	env := []string{"ESCAPEMENT_HTTP_LISTEN="}
	const work = `
jobs: [{name: a, schedule: "99 * * * *"}, {name: a}]
notify: {targets: [{name: x}]}
calendars: {de: {file: nosuch.ics}}
defaults: {ttl: 1ns}
history: {keep: 1}
handlers: {h: {}}
`
	files("redis: {url: redis://127.0.0.1:1, next: redis://" + addr + "}\n" + work)
	for _, line := range []string{"nodes list", "jobs list", "jobs pause yearly --reason x", "doctor", "backup -", "ledger verify", "lock a -- true", "audit list"} {
		code, stdout, stderr := cmdtest.Call(env, "", append(strings.Fields(line), "--config", config, "--redis", "redis://"+addr)...)
		if line == "lock a -- true" {
			code, stdout, stderr = cmdtest.Call(env, "", "lock", "--config", config, "--redis", "redis://"+addr, "a", "--", "true")
		}
		if code == command.ExitConfig || strings.Contains(stderr, "z.yaml") {
			t.Errorf("%s: exit %d, %s%s", line, code, stdout, stderr)
		}
	}
	files("redis: {url: 'rediss://127.0.0.1:1', tls: {ca_file: " + redistest.NewCertificates(t).CAFile + "}}\n")
	if code, _, stderr := cmdtest.Call(env, "", "jobs", "list", "--config", config, "--redis", "redis://"+addr); code != command.ExitDone {
		t.Errorf("tls: exit %d, %s", code, stderr)
	}
	files("redis: {url: redis://127.0.0.1:1}\n" + work)
	if code, _, stderr := cmdtest.Call(env, "", "run", "--config", config); code != command.ExitConfig || !strings.Contains(stderr, "z.yaml") || !strings.Contains(stderr, "jobs[") {
		t.Errorf("run: exit %d, %s", code, stderr)
	}
	if code, _, _ := cmdtest.Call(env, "", "config", "print", "--config", config); code != command.ExitConfig {
		t.Errorf("config print: exit %d", code)
	}
	for text, path := range map[string]string{"namepsace: x": "namepsace", "redis: {mode: x}": "redis.mode", "namespace: '?'": "namespace", "redis: {url: 'redis://h/x'}": "redis.url"} {
		files(text + work)
		if code, _, stderr := cmdtest.Call(env, "", "jobs", "list", "--config", config); code != command.ExitConfig || !strings.Contains(stderr, path) || strings.Contains(stderr, "jobs[") {
			t.Errorf("%s: exit %d, %s", text, code, stderr)
		}
	}
}
