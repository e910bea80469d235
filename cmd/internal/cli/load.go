package cli

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

// source is where a configuration comes from.
type source struct {
	file     string // "" reads no file
	naming   string // how the file is named: "--config FILE"
	optional bool   // an absent file is no fault: its settings keep their defaults
	tool     bool   // only the connection is needed: settings of a node are neither read nor judged
	env      map[string]string
	flags    map[string]flagValue // by path of the setting
}

// flagValue is the value of a flag.
type flagValue struct {
	flag string // "--redis"
	text string
}

// loaded is a configuration that was judged and found good.
type loaded struct {
	Config
	from origins

	dropped map[string]place // settings that override has dropped, by path, with the place that gave them

	src   source
	stamp fileStamp  // of the files, from before they were read
	jobs  []jobs.Job // ready to be registered, in the order of the files

	handlers map[string]jobs.Func

	notify notify.Config // without targets: no notifications
}

// load puts a configuration together: defaults, files, environment, flags, each
// over the one before, then the checks. The error is a faultList with everything
// that is wrong; only the stamp counts then. Nothing is connected and nothing written.
func load(src source) (*loaded, error) {
	d := &decoder{origins: newOrigins(src.file)}
	l := &loaded{Config: defaults(), from: d.origins, src: src, stamp: stampOf(src.file), dropped: map[string]place{}}
	if src.file != "" {
		if !d.readFile(src, &l.Config) {
			return l, d.faults.err()
		}
		if !src.tool {
			d.readJobFiles(&l.Config)
		}
	}
	l.override(func() { applyEnv(&l.Config, src.env, l.from, &d.faults) })
	refuseUnknown(src.env, &d.faults)
	l.override(func() { applyFlags(&l.Config, src.flags, l.from, &d.faults) })
	c := checker{loaded: l, faults: d.faults, jobLabels: d.jobLabels, targetLabels: d.targetLabels}
	if src.tool {
		c.connection()
		//guard:tools-connect P8 a fault in a job does not keep an operator from the namespace
		c.faults.drop(isWork)
		return l, c.faults.err()
	}
	c.check()
	return l, c.faults.err()
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
func (d *decoder) readFile(src source, c *Config) bool {
	data, err := readLimited(src.file, maxFile)
	if os.IsNotExist(err) && src.optional {
		return true
	}
	if os.IsNotExist(err) {
		d.faults.add(place{file: src.file}, "", "there is no such file; name one with %s, or begin with what escapement config init writes", src.naming)
		return false
	}
	if err != nil {
		d.faults.add(place{file: src.file}, "", "%v", err)
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
func applyFlags(c *Config, flags map[string]flagValue, from origins, faults *faultList) {
	for _, l := range leaves(c) {
		f, ok := flags[l.path]
		if !ok {
			continue
		}
		from.from(l.path, f.flag)
		if err := setFlat(l.value, l.words, f.text); err != nil {
			faults.add(place{name: f.flag}, l.path, "%v", err)
		}
	}
}
