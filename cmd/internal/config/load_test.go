package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// TestFaults reads every file of testdata/config and compares its faults with the .want beside it.
func TestFaults(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			got := "no fault\n"
			if _, err := Load(Source{File: file}); err != nil {
				got = strings.ReplaceAll(err.Error(), file, name+".yaml") + "\n"
			}
			if strings.Contains(got, "hunter2") || strings.Contains(got, "ter2") {
				t.Errorf("a password is told:\n%s", got)
			}
			testkit.Golden(t, strings.TrimSuffix(file, ".yaml")+".want", got)
		})
	}
}

// TestHugeFile is a fault, and no failure. Other files that cannot be read are in testdata/cli.
func TestHugeFile(t *testing.T) {
	huge := testkit.Write(t, strings.Repeat("# a comment\n", 2<<20/12))
	var wrong Error
	if _, err := Load(Source{File: huge}); !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), huge+": is larger than 1024 KiB; name the right file") {
		t.Errorf("got %v", err)
	}
	if l, err := Load(Source{File: huge + ".none", Optional: true}); err != nil || l.Namespace != "escapement" {
		t.Errorf("an absent file that is optional: got %v", err)
	}
}

// TestOrder lets each source win over the ones before it.
func TestOrder(t *testing.T) {
	file := testkit.Write(t, "namespace: file\nnode: {weight: 2, grace: 1s}\nlog: {level: warn}\n")
	l, err := Load(Source{
		File:  file,
		Env:   map[string]string{"ESCAPEMENT_NAMESPACE": "env", "ESCAPEMENT_NODE_GRACE": "2s"},
		Flags: map[string]FlagValue{"namespace": {"--namespace", "flag"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{l.Namespace, l.Node.Grace, l.Node.Weight, l.Log.Level, l.Log.Format}
	if want := "[flag 2s 2 warn auto]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestFaultsNameTheirSource expects the name of the flag or the variable, not a line of the file.
func TestFaultsNameTheirSource(t *testing.T) {
	file := testkit.Write(t, "node: {max_skew: 2s}\nlog: {level: loud}\n")
	_, err := Load(Source{
		File: file,
		Env: map[string]string{
			"ESCAPEMENT_REDIS_MODE": "ring", "ESCAPEMENT_NODE_WEIGHT": "much", "ESCAPEMENT_NODE_MAX_STEP": "1s",
			"ESCAPEMENT_NODE_LABELS": "a", "ESCAPEMENT_HTTP_LISTEN": "x",
		},
		Flags: map[string]FlagValue{"redis.url": {"--redis", "http://x"}, "namespace": {"--namespace", ""}},
	})
	if err == nil {
		t.Fatal("no fault")
	}
	testkit.Golden(t, "testdata/sources.want", strings.ReplaceAll(err.Error(), file, "config.yaml")+"\n")
}

// FuzzLoad expects an answer for any bytes: faults with a message, or a configuration that prints
// and reads back the same.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "../../../config.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	file := filepath.Join(f.TempDir(), "config.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Load(Source{File: file})
		if err == nil {
			sameAfterPrinting(t, file, l)
			return
		}
		var wrong Error
		if !errors.As(err, &wrong) || len(wrong) == 0 {
			t.Fatalf("not a configError: %v", err)
		}
		for _, w := range wrong {
			if w.Msg == "" || strings.ContainsAny(w.String(), "\n\r") {
				t.Errorf("not one line: %q", w)
			}
		}
	})
}

// sameAfterPrinting prints a configuration and reads it again. Masked values stay masked. file is
// overwritten.
func sameAfterPrinting(t *testing.T, file string, l *Loaded) {
	t.Helper()
	var first, second bytes.Buffer
	if err := Print(&first, &l.Config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, first.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Load(Source{File: file})
	if err != nil {
		t.Fatalf("what was printed is refused: %v\n%s", err, first.String())
	}
	if err := Print(&second, &again.Config); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Errorf("printed, read and printed again differs:\n%s\n%s", first.String(), second.String())
	}
}

// Where a flag or a variable names other servers, the credentials and TLS of the sources below stay
// with their own servers.
func TestSecretsStayWithTheirServers(t *testing.T) {
	t.Parallel()
	c := redistest.NewCertificates(t)
	ca := "{ca_file: " + c.CAFile + "}"
	sentinel := "redis: {url: 'redis+sentinel://old/0?master_name=m', sentinel_user: u, sentinel_password: hunter2}\n"
	addrs := "redis: {mode: sentinel, addrs: ['old:1'], master_name: m, sentinel_password: hunter2, tls: " + ca + "}\n"
	secure := "redis: {url: 'rediss://old', tls: " + ca + "}\n"
	locks := "locks: {driver: redis, servers: ['rediss://old'], user: u, password: hunter2, tls: " + ca + "}\n"
	for name, tt := range map[string]struct {
		file, env, flag string // PATH=VALUE
		kept            bool
	}{
		"a flag names another Redis":         {secure, "", "redis.url=redis://new", false},
		"a flag names another Redis and CA":  {secure, "", "redis.url=rediss://new?ca_file=" + c.CAFile, false},
		"a flag names no Redis":              {secure, "", "redis.url=", false},
		"a variable names another Redis":     {secure, "REDIS_URL=redis://new", "", false},
		"a flag over file and variable":      {"namespace: n\n", "REDIS_URL=redis+sentinel://old/0?master_name=m\nREDIS_SENTINEL_PASSWORD=hunter2", "redis.url=redis+sentinel://new/0?master_name=m", false},
		"a flag names other sentinels":       {sentinel, "", "redis.url=redis+sentinel://new/0?master_name=m", false},
		"a variable names other sentinels":   {addrs, "REDIS_ADDRS=new:1", "", false},
		"a flag names other stores":          {locks, "", "locks.servers=redis://new", false},
		"a flag names another driver":        {locks, "", "locks.driver=redlock", false},
		"the password of the same server":    {secure, "REDIS_URL=rediss://:hunter2@old/1", "", true},
		"the user of the same sentinels":     {addrs, "", "redis.url=rediss://v:hunter2@/0", true},
		"the file names no server":           {"redis: {url: '', tls: " + ca + "}\n", "REDIS_URL=rediss://new", "", true},
		"the file names no store":            {"locks: {driver: redis, servers: [], tls: " + ca + "}\n", "", "locks.servers=rediss://new", true},
		"the same source names both":         {secure, "REDIS_URL=rediss://new\nREDIS_TLS_CA_FILE=" + c.CAFile, "", true},
		"the driver of the file once more":   {locks, "", "locks.driver=redis", true},
		"the password of the file's servers": {locks, "LOCKS_PASSWORD=hunter3", "", true},
	} {
		src := Source{File: testkit.Write(t, tt.file), Tool: true, Env: map[string]string{}, Flags: map[string]FlagValue{}}
		for line := range strings.Lines(tt.env) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			src.Env["ESCAPEMENT_"+key] = value
		}
		if path, value, is := strings.Cut(tt.flag, "="); is {
			src.Flags[path] = FlagValue{"--flag", value}
		}
		l, err := Load(src)
		if err != nil && name != "a flag names another driver" { // of one server, which redlock refuses
			t.Errorf("%s: %v", name, err)
		}
		none := l.Redis.TLS == (TLS{}) && l.Redis.SentinelUser == "" && l.Redis.SentinelPassword == "" && l.Locks.User == "" && l.Locks.Password == "" && l.Locks.TLS == (TLS{})
		if none == tt.kept {
			t.Errorf("%s: kept %v, want %v: %+v %+v", name, !none, tt.kept, l.Redis.TLS, l.Locks.TLS)
		}
	}
	l, err := Load(Source{File: testkit.Write(t, secure), Tool: true, Flags: map[string]FlagValue{"redis.url": {"--redis", "rediss://old?ca_file=" + redistest.NewCertificates(t).CAFile}}})
	if err != nil {
		t.Fatal(err)
	}
	other := redisconn.Trouble{Kind: redisconn.KindSetting, Setting: redisconn.SettingTLS}
	for name, tt := range map[string]struct {
		src  Source
		want string // behind the file's name
	}{
		"the cure of a flag":     {Source{Flags: map[string]FlagValue{"redis.url": {"--redis", "rediss://new"}}}, ":1: redis.tls.ca_file belongs to the servers that are named there, and is not used for others"},
		"the cure of a variable": {Source{Env: map[string]string{"ESCAPEMENT_REDIS_URL": "rediss://new"}}, ":1: redis.tls.ca_file belongs to the servers that are named there, and is not used for others; ESCAPEMENT_REDIS_TLS_CA_FILE would be used"},
		"the file's own server":  {Source{}, ""},
	} {
		tt.src.File, tt.src.Tool = l.Src.File, true
		l, err := Load(tt.src)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(l.badSetting(&other).Error(), "; "+l.Src.File); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	own, err := l.Address()
	if err != nil {
		t.Fatal(err)
	}
	files, err := redisconn.TLS(l.Redis.TLS).Config()
	if err != nil || own.TLSConfig().RootCAs.Equal(files.RootCAs) {
		t.Errorf("the file's authority, %v, went before that of --redis", err)
	}
}
