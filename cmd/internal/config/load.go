package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/boundedfile"
	"github.com/escapement/escapement/scheduler/notify"
)

// maxFile bounds a configuration file, in bytes: some ten thousand jobs.
const maxFile = 1 << 20

// Source is where a configuration comes from.
type Source struct {
	File     string // "" reads no file
	Naming   string // how the file is named: "--config FILE"
	Optional bool   // an absent file is no fault: its settings keep their defaults
	Tool     bool   // only the connection is needed: settings of a node are neither read nor judged
	Env      map[string]string
	Flags    map[string]FlagValue // by path of the setting
}

// FlagValue is the value of a flag.
type FlagValue struct {
	Flag string // "--redis"
	Text string
}

// Loaded is a configuration that was judged and found good.
type Loaded struct {
	Config
	From origins

	dropped map[string]Place // settings that override has dropped, by path, with the place that gave them

	Src     Source
	Stamp   Stamp      // of the files, from before they were read
	JobList []jobs.Job // ready to be registered, in the order of the files

	HandlerFuncs map[string]jobs.Func

	NotifyConfig notify.Config // without targets: no notifications
}

// Load puts a configuration together: defaults, files, environment, flags, each
// over the one before, then the checks. The error is a Faults with everything
// that is wrong; only the stamp counts then. Nothing is connected and nothing written.
func Load(src Source) (*Loaded, error) {
	d := &decoder{origins: newOrigins(src.File)}
	l := &Loaded{Config: Default(), From: d.origins, Src: src, Stamp: stampOf(src.File), dropped: map[string]Place{}}
	if src.File != "" {
		if !d.readFile(src, &l.Config) {
			return l, d.faults.Err()
		}
		if !src.Tool {
			d.readJobFiles(&l.Config)
		}
	}
	l.override(func() { applyEnv(&l.Config, src.Env, l.From, &d.faults) })
	RefuseUnknown(src.Env, &d.faults)
	l.override(func() { applyFlags(&l.Config, src.Flags, l.From, &d.faults) })
	c := checker{Loaded: l, faults: d.faults, jobLabels: d.jobLabels, targetLabels: d.targetLabels}
	if src.Tool {
		c.connection()
		//guard:tools-connect P8 a fault in a job does not keep an operator from the namespace
		c.faults.drop(isWork)
		return l, c.faults.Err()
	}
	c.check()
	return l, c.faults.Err()
}

// isWork reports whether a path is of the nodes' work, which no tool reads. Unknown keys stay
// faults for tools too: one of them may have been meant for the namespace.
func isWork(path string) bool {
	section := path
	if end := strings.IndexAny(path, ".["); end >= 0 {
		section = path[:end]
	}
	return slices.Contains([]string{"jobs", "calendars", "defaults", "handlers", "notify", "history"}, section) || path == "redis.next"
}

// readFile decodes the file over the defaults. It reports false when there is
// nothing that the rest could be judged by.
func (d *decoder) readFile(src Source, c *Config) bool {
	data, err := readLimited(src.File, maxFile)
	if os.IsNotExist(err) && src.Optional {
		return true
	}
	if os.IsNotExist(err) {
		d.faults.Add(Place{File: src.File}, "", "there is no such file; name one with %s, or begin with what escapement config init writes", src.Naming)
		return false
	}
	if err != nil {
		d.faults.Add(Place{File: src.File}, "", "%v", err)
		return false
	}
	root := d.parse(data)
	if root == nil {
		return false
	}
	d.decode(root, "", setting{value: reflect.ValueOf(c).Elem()})
	return true
}

// readLimited reads a regular file of at most limit bytes.
func readLimited(name string, limit int64) ([]byte, error) {
	data, err := boundedfile.Read(name, limit)
	if size := new(boundedfile.SizeError); errors.As(err, &size) {
		return nil, fmt.Errorf("is larger than %d KiB; name the right file, or shorten this one", limit>>10)
	}
	return data, print.PlainPathError(err)
}

// applyFlags sets the values of flags.
func applyFlags(c *Config, flags map[string]FlagValue, from origins, faults *Faults) {
	for _, l := range Leaves(c) {
		f, ok := flags[l.Path]
		if !ok {
			continue
		}
		from.from(l.Path, f.Flag)
		if err := setFlat(l.value, l.words, f.Text); err != nil {
			faults.Add(Place{Name: f.Flag}, l.Path, "%v", err)
		}
	}
}
