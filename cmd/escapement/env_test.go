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

// TestVariables sets some settings of each kind by their variables; that each setting has one is TestEverySettingIsReadable's.
func TestVariables(t *testing.T) {
	l, err := load(source{env: map[string]string{
		"ESCAPEMENT_NAMESPACE": "n", "ESCAPEMENT_REDIS_ADDRS": "", "ESCAPEMENT_REDIS_PARTITIONS": "4", "ESCAPEMENT_NODE_LABELS": "zone=a, disk=x=y",
		"ESCAPEMENT_NODE_GRACE": "1s", "ESCAPEMENT_HTTP_LISTEN": "", "ESCAPEMENT_DEFAULTS_OVERLAP": "queue",
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.Namespace, want.Redis.Addrs, want.Redis.Partitions, want.Node.Labels = "n", []string{}, 4, map[string]string{"zone": "a", "disk": "x=y"}
	want.Node.Grace, want.HTTP.Listen, want.Defaults.Overlap = time.Second, "", "queue"
	if !reflect.DeepEqual(l.Config, want) {
		t.Errorf("got %+v\nwant %+v", l.Config, want)
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
