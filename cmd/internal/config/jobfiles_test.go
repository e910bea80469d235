package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/testkit"
)

// TestJobFiles expects the jobs of jobs.d behind the jobs of the configuration, in the order of the
// files' names, with its defaults.
func TestJobFiles(t *testing.T) {
	config := testkit.Write(t, "defaults: {ttl: 20s}\n"+testkit.JobsOf("first"))
	dir := filepath.Join(filepath.Dir(config), JobsDir)
	testkit.Put(t, filepath.Join(dir, "b.yaml"), testkit.JobsOf("third"))
	testkit.Put(t, filepath.Join(dir, "a.yaml"), testkit.JobsOf("second")+"  - {name: last, after: first, exec: {command: [x]}}\n")
	testkit.Put(t, filepath.Join(dir, "..data", "a.yaml"), testkit.JobsOf("second"))
	testkit.Put(t, filepath.Join(dir, ".hidden.yaml"), "nonsense")
	testkit.Put(t, filepath.Join(dir, "README"), "nonsense")
	l, err := Load(Source{File: config})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, j := range l.JobList {
		if names = append(names, j.Name); j.TTL != 20*time.Second {
			t.Errorf("%s has ttl %s", j.Name, j.TTL)
		}
	}
	if got := strings.Join(names, " "); got != "first second last third" {
		t.Errorf("jobs %s", got)
	}
}

// TestJobFilesAreRefused expects each fault with its file and line.
func TestJobFilesAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, file, text, want string }{
		{"a name twice", "a.yaml", "\n" + testkit.JobsOf("first"), `DIR/jobs.d/a.yaml:3: jobs[1].name: "first" is the name of the job at DIR/config.yaml:2 already; give one of them another name`},
		{"a name twice in it", "a.yaml", testkit.JobsOf("x") + "  - {name: x, schedule: '@hourly', exec: {command: [x]}}\n", `DIR/jobs.d/a.yaml:3: jobs[2].name: "x" is the name of the job at line 2 already; give one of them another name`},
		{"another setting", "a.yaml", "redis: {url: x}\n", "DIR/jobs.d/a.yaml:1: redis: a file of jobs.d has jobs alone; put other settings into DIR/config.yaml"},
		{"an unknown key", "a.yaml", "jobs:\n  - {name: x, shedule: '@hourly', exec: {command: [x]}}\n", "DIR/jobs.d/a.yaml:2: jobs[x].shedule: unknown key; did you mean schedule"},
		{"not YAML", "a.yaml", "jobs: [\n", "DIR/jobs.d/a.yaml:2: not YAML"},
		{"empty", "a.yaml", "", "DIR/jobs.d/a.yaml: the file is empty"},
		{"another ending", "a.yml", testkit.JobsOf("x"), "DIR/jobs.d/a.yml: files of jobs.d end in .yaml; rename it"},
		{"a file for the folder", "", "", "DIR/jobs.d: not a directory"},
		{"a folder for a file", "a.yaml/b", "", "DIR/jobs.d/a.yaml: is a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := testkit.Write(t, testkit.JobsOf("first"))
			testkit.Put(t, filepath.Join(filepath.Dir(config), JobsDir, tt.file), tt.text)
			_, err := Load(Source{File: config})
			if err == nil {
				t.Fatal("no fault")
			}
			if got := strings.ReplaceAll(err.Error(), filepath.Dir(config), "DIR"); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestStamp expects every change of the files to be noticed, also a change that leaves time and
// size as they are, and nothing without one.
func TestStamp(t *testing.T) {
	v := testkit.NewVolume(t, testkit.JobsOf("first"))
	more := filepath.Join(v.Dir, JobsDir, "more.yaml")
	last := stampOf(v.File())
	for _, change := range []struct {
		name string
		make func()
	}{
		{"a link is swapped", func() { v.Swap(testkit.JobsOf("other")) }},
		{"a file of jobs comes", func() { testkit.Put(t, more, testkit.JobsOf("more")) }},
		{"it is replaced", func() {
			info, err := os.Stat(more)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Put(t, more+"x", testkit.JobsOf("most"))
			if err := os.Chtimes(more+"x", info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(more+"x", more); err != nil {
				t.Fatal(err)
			}
		}},
		{"it is written to", func() {
			if err := os.WriteFile(more, []byte(testkit.JobsOf("longer")), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"it goes", func() {
			if err := os.Remove(more); err != nil {
				t.Fatal(err)
			}
		}},
		{"the configuration goes", func() {
			if err := os.Remove(v.File()); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		if !last.Same(stampOf(v.File())) {
			t.Errorf("before %s: a change", change.name)
		}
		change.make()
		now := stampOf(v.File())
		if last.Same(now) {
			t.Errorf("%s: no change", change.name)
		}
		last = now
	}
}
