//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/testkit"
)

// TestPipesAreRefused: a named pipe in the place of any file that this program reads is refused,
// without a wait for its writer.
func TestPipesAreRefused(t *testing.T) {
	t.Parallel()
	const refused = ": is a named pipe, and no regular file"
	conf := testkit.Write(t, testkit.JobsOf("first"))
	dir := filepath.Dir(conf)
	pipe := filepath.Join(dir, "pipe")
	inJobs := testkit.Write(t, testkit.JobsOf("first"))
	fifo := func(path string) string {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo(pipe)
	called := func(args ...string) func() error {
		return func() error {
			_, _, stderr := cmdtest.Call(nil, "", args...)
			return errors.New(stderr)
		}
	}
	for _, tt := range []struct {
		name, want string
		read       func() error
	}{
		{"jobs.d", fifo(filepath.Join(filepath.Dir(inJobs), config.JobsDir, "z.yaml")) + refused, func() error { _, err := config.Load(config.Source{File: inJobs}); return err }},
		{"config", pipe + refused, func() error { _, err := config.Load(config.Source{File: pipe}); return err }},
		{"secret", "ESCAPEMENT_REDIS_URL_FILE: " + pipe + refused, func() error {
			_, err := config.Load(config.Source{File: conf, Env: map[string]string{"ESCAPEMENT_REDIS_URL_FILE": pipe}})
			return err
		}},
		{"calendar", refused, func() error {
			calendar := fifo(filepath.Join(dir, "days.ics"))
			_, err := config.Load(config.Source{File: testkit.Write(t, "calendars: {de: ["+calendar+"]}\n"+testkit.JobsOf("first"))})
			return err
		}},
		{"stored jobs", refused, called("jobs", "apply", "-f", pipe)},
		{"backup", refused, called("restore", pipe, "--redis", "redis://"+cmdtest.ClosedPort(t))},
	} {
		ended := make(chan error, 1)
		go func() { ended <- tt.read() }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
		case <-time.After(cmdtest.Within):
			t.Fatalf("%s: it waits for a writer", tt.name)
		}
	}
}
