package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEveryVariable sets each setting outside the jobs by its variable.
func TestEveryVariable(t *testing.T) {
	env := map[string]string{
		"ESCAPEMENT_NAMESPACE": "n", "ESCAPEMENT_REDIS_URL": "redis+sentinel://r/0?master_name=m", "ESCAPEMENT_REDIS_MODE": "standalone",
		"ESCAPEMENT_REDIS_SENTINEL_USER": "u", "ESCAPEMENT_REDIS_SENTINEL_PASSWORD": "p",
		"ESCAPEMENT_REDIS_ADDRS": "", "ESCAPEMENT_REDIS_MASTER_NAME": "", "ESCAPEMENT_REDIS_CONFIRM": "replicas",
		"ESCAPEMENT_REDIS_PARTITIONS": "4", "ESCAPEMENT_NODE_NAME": "a1", "ESCAPEMENT_NODE_GENERATION": "neo",
		"ESCAPEMENT_REDIS_NEXT": "redis+cluster://s", "ESCAPEMENT_REDIS_REPLICAS": "3",
		"ESCAPEMENT_NODE_REVISION": "r7", "ESCAPEMENT_NODE_LABELS": "zone=a, disk=x=y", "ESCAPEMENT_NODE_WEIGHT": "3",
		"ESCAPEMENT_NODE_MAX_RUNNING": "9", "ESCAPEMENT_NODE_GRACE": "1s", "ESCAPEMENT_NODE_SWEEP_EVERY": "2s",
		"ESCAPEMENT_NODE_MAX_SKEW": "3s", "ESCAPEMENT_NODE_MAX_STEP": "4s", "ESCAPEMENT_NODE_FAILOVER_HOLD": "3s",
		"ESCAPEMENT_NODE_DRAIN_TIMEOUT": "6s", "ESCAPEMENT_HTTP_LISTEN": "", "ESCAPEMENT_LOG_LEVEL": "debug",
		"ESCAPEMENT_LOG_FORMAT": "json", "ESCAPEMENT_HISTORY_KEEP": "20", "ESCAPEMENT_HISTORY_KEEP_FOR": "8h",
		"ESCAPEMENT_DEFAULTS_TTL": "9s", "ESCAPEMENT_DEFAULTS_OVERLAP": "skip", "ESCAPEMENT_DEFAULTS_CATCH_UP": "latest",
		"ESCAPEMENT_DEFAULTS_TIME_ZONE": "Asia/Tokyo",
	}
	l, err := load(source{env: env})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Namespace: "n",
		Redis: Redis{
			URL: "redis+sentinel://r/0?master_name=m", Next: "redis+cluster://s", Mode: "standalone", Addrs: []string{}, SentinelUser: "u", SentinelPassword: "p",
			Confirm: "replicas", Replicas: 3, Partitions: 4,
		},
		Node: Node{
			Name: "a1", Generation: "neo", Revision: "r7", Labels: map[string]string{"zone": "a", "disk": "x=y"}, Weight: 3, MaxRunning: 9,
			Grace: time.Second, SweepEvery: 2 * time.Second, MaxSkew: 3 * time.Second, MaxStep: 4 * time.Second,
			FailoverHold: 3 * time.Second, DrainTimeout: 6 * time.Second,
		},
		Log:      Log{Level: "debug", Format: "json"},
		History:  History{Keep: 20, KeepFor: 8 * time.Hour},
		Defaults: Defaults{TTL: 9 * time.Second, Overlap: "skip", CatchUp: "latest", TimeZone: "Asia/Tokyo"},
	}
	if !reflect.DeepEqual(l.Config, want) {
		t.Errorf("got %+v\nwant %+v", l.Config, want)
	}
	for _, leaf := range leaves(&l.Config) {
		if _, ok := env[leaf.env()]; !ok {
			t.Errorf("%s was not tried", leaf.env())
		}
	}
}

func TestSecretFromFile(t *testing.T) {
	dir := t.TempDir()
	secret, huge := filepath.Join(dir, "secret"), filepath.Join(dir, "huge")
	for file, text := range map[string]string{secret: "redis://:hunter2@r:1\r\n", huge: strings.Repeat("x", maxSecret+1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := load(source{env: map[string]string{"ESCAPEMENT_REDIS_URL_FILE": secret}})
	if err != nil || l.Redis.URL != "redis://:hunter2@r:1" {
		t.Errorf("got %v", err)
	}
	for want, env := range map[string]map[string]string{
		"ESCAPEMENT_REDIS_URL: ESCAPEMENT_REDIS_URL_FILE is set too; keep one of them":              {"ESCAPEMENT_REDIS_URL": "redis://r", "ESCAPEMENT_REDIS_URL_FILE": secret},
		"ESCAPEMENT_REDIS_URL_FILE: " + dir + "/none: no such file or directory":                    {"ESCAPEMENT_REDIS_URL_FILE": dir + "/none"},
		"ESCAPEMENT_REDIS_URL_FILE: " + huge + ": larger than 64 KiB; is it the right file":         {"ESCAPEMENT_REDIS_URL_FILE": huge},
		"ESCAPEMENT_REDIS_URL_FILE: has no scheme; write redis://HOST:6379/0, rediss://HOST:6379/0": {"ESCAPEMENT_REDIS_URL_FILE": os.DevNull + "x", "": ""},
	} {
		if _, odd := env[""]; odd {
			bare := filepath.Join(dir, "bare")
			if err := os.WriteFile(bare, []byte("hunter2"), 0o600); err != nil {
				t.Fatal(err)
			}
			env = map[string]string{"ESCAPEMENT_REDIS_URL_FILE": bare}
		}
		_, err := load(source{env: env})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestListWithBrackets refuses a list that is written as in the file, whole or cut by a shell, and takes addresses with
// brackets of their own.
func TestListWithBrackets(t *testing.T) {
	for text, want := range map[string]string{
		"[a:1,b:2]":               `ESCAPEMENT_REDIS_ADDRS: "[a:1,b:2]" has brackets; a list is written here without them: a:1,b:2`,
		"[a:1,":                   `ESCAPEMENT_REDIS_ADDRS: "[a:1," has brackets; a list is written here without them: a:1,b:2`,
		"[::1]:26379,[::2]:26379": "",
	} {
		_, err := load(source{env: map[string]string{"ESCAPEMENT_REDIS_MODE": "sentinel", "ESCAPEMENT_REDIS_MASTER_NAME": "main", "ESCAPEMENT_REDIS_ADDRS": text}})
		if got := fmt.Sprint(err); want != "" && got != want || want == "" && err != nil {
			t.Errorf("%s: got %v\nwant %s", text, err, want)
		}
	}
}

// TestSlips tells of a variable that is nearly a setting, and of no other.
func TestSlips(t *testing.T) {
	env := map[string]string{}
	for _, name := range []string{"ESCAPEMENT_REDIS_ULR", "ESCAPEMENT_NOD_NAME", "ESCAPEMENT_REDIS_URL_FIL", "ESCAPEMENT_REDIS_URL",
		"ESCAPEMENT_SERVICE_HOST", "ESCAPEMENT_PORT_6379_TCP", "ESCAPEMENT_TOKEN", "ESCAPEMENT_TICK", "PATH", "XSCAPEMENT_REDIS_URL"} {
		env[name] = "x"
	}
	want := []string{
		"ESCAPEMENT_NOD_NAME is not read; did you mean ESCAPEMENT_NODE_NAME",
		"ESCAPEMENT_REDIS_ULR is not read; did you mean ESCAPEMENT_REDIS_URL",
		"ESCAPEMENT_REDIS_URL_FIL is not read; did you mean ESCAPEMENT_REDIS_URL_FILE",
	}
	if got := envSlips(env); !slices.Equal(got, want) {
		t.Errorf("got %s\nwant %s", fmt.Sprint(got), want)
	}
}

// TestFaultOfAPartNamesTheVariable that has replaced the whole list or map, not the line of a file.
func TestFaultOfAPartNamesTheVariable(t *testing.T) {
	file := write(t, "redis: {mode: cluster, addrs: [\"h:1\"]}\nnode: {labels: {zone: a}}\n")
	_, err := load(source{file: file, env: map[string]string{
		"ESCAPEMENT_REDIS_ADDRS": "h", "ESCAPEMENT_NODE_LABELS": "zone=" + strings.Repeat("x", 257),
	}})
	want := "ESCAPEMENT_NODE_LABELS: the value must be UTF-8 text of at most 256 bytes"
	if err == nil || !strings.HasPrefix(err.Error(), "ESCAPEMENT_REDIS_ADDRS: \"h\" is not ") || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}
