package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/escapement/escapement/locking/redistest"
)

// documentedRights reads the Redis user of docs/operations.md, as the words of ACL SETUSER.
func documentedRights(t *testing.T) []any {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\nACL SETUSER escapement on >PASSWORD ")
	if !found {
		t.Fatal("docs/operations.md names no rights")
	}
	line, _, _ := strings.Cut(rest, "\n")
	args := []any{"acl", "setuser", "escapement", "on", ">pw"}
	for word := range strings.FieldsSeq(line) {
		args = append(args, word)
	}
	return args
}

// TestDocumentedRights runs a node, the commands and a lock as the Redis user of docs/operations.md: Redis denies them nothing.
func TestDocumentedRights(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	client := redis.Client(t)
	if err := client.Do(t.Context(), documentedRights(t)...).Err(); err != nil {
		t.Fatal(err)
	}
	env := []string{"ESCAPEMENT_REDIS_URL=redis://escapement:pw@" + redis.Addr(), "ESCAPEMENT_HTTP_LISTEN=127.0.0.1:0", "ESCAPEMENT_NODE_NAME=a1"}
	p := start(t, env, "run", "--config", write(t, `jobs:
  - {name: often, schedule: "@every 1s", exec: {command: ["true"]}}
  - {name: parts, schedule: "@every 1s", shards: 3, exec: {command: ["true"]}}
  - {name: next, after: often, on_crash: rerun, exec: {command: ["true"]}}
`))
	p.logged("run ended", `"job":"next"`)
	p.logged("run ended", `"job":"parts"`)
	for _, args := range []string{
		"jobs list", "jobs get often", "jobs run often --wait --payload {} --unique k", "jobs pause often --reason why", "jobs resume often",
		"runs list", "nodes list", "nodes drain a1 --reason why", "nodes resume a1", "generations list",
		"lock nightly --wait 1s -- true", "locks list", "ledger verify",
	} {
		if code, _, stderr := call(env, "", strings.Fields(args)...); code != exitDone {
			t.Errorf("%s: exit %d, %s", args, code, stderr)
		}
	}
	p.signal(syscall.SIGTERM)
	p.exits(exitDone)
	if code, _, stderr := call(env, "", "jobs", "remove", "next"); code != exitDone {
		t.Errorf("jobs remove: exit %d, %s", code, stderr)
	}
	denied, err := client.Do(t.Context(), "acl", "log").Slice()
	if err != nil || len(denied) > 0 {
		t.Errorf("Redis denied %v, %v", denied, err)
	}
	// The log of denials sees what is missing: without one of the rights it is not empty.
	if err := client.Do(t.Context(), "acl", "setuser", "escapement", "-@hash").Err(); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := call(env, "", "runs", "list"); code == exitDone {
		t.Error("runs list works without hashes")
	}
}
