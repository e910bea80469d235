package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/boundedfile"
)

// JobsDir is the folder beside the configuration file whose *.yaml files have more jobs.
const JobsDir = "jobs.d"

// jobFiles lists the files of jobs beside a configuration file, by name. It leaves out hidden
// files: editors, and volumes of Kubernetes, keep theirs there.
func jobFiles(config string) (files []string, err error) {
	dir := filepath.Join(filepath.Dir(config), JobsDir)
	entries, err := boundedfile.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !strings.HasPrefix(e.Name(), ".") && (ext == ".yaml" || ext == ".yml") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, print.PlainPathError(err)
}

// readJobFiles adds the jobs of the files in jobs.d.
func (d *decoder) readJobFiles(c *Config) {
	config := d.File
	defer func() { d.File = config }()
	files, err := jobFiles(config)
	if err != nil {
		d.faults.Add(Place{File: filepath.Join(filepath.Dir(config), JobsDir)}, "", "%v", err)
	}
	for _, d.File = range files {
		if filepath.Ext(d.File) == ".yml" {
			d.faults.Add(Place{File: d.File}, "", "files of %s end in .yaml; rename it", JobsDir)
			continue
		}
		data, err := readLimited(d.File, maxFile)
		if err != nil {
			d.faults.Add(Place{File: d.File}, "", "%v", err)
			if errors.Is(err, boundedfile.ErrNoAnswer) {
				return // further files have the same file system
			}
			continue
		}
		if root := d.parse(data); root != nil {
			d.pairs(root, "", true, func(key, value *yaml.Node) { d.jobFile(key, value, c, config) })
		}
	}
}

// jobFile reads the only valid key of a file of jobs.
func (d *decoder) jobFile(key, value *yaml.Node, c *Config, config string) {
	if key.Value != "jobs" {
		d.fault(key, keyName(key.Value), "a file of %s has jobs alone; put other settings into %s", JobsDir, config)
		return
	}
	var list []jobEntry
	d.decode(value, "jobs", setting{value: reflect.ValueOf(&list).Elem()})
	c.Jobs = append(c.Jobs, list...)
}

// Stamp is the file system's data about the files of a configuration, by which a change is
// noticed.
type Stamp struct {
	Files     []string
	infos     []fs.FileInfo // nil for a file that cannot be seen
	calendars []string      // the calendars' files
	hang      bool          // a file did not answer, and no further one was read
}

// stampOf follows symbolic links to the files of a configuration. So the swap of a link is a
// change, as Kubernetes swaps the links of a ConfigMap.
func stampOf(config string) (s Stamp) {
	files, _ := jobFiles(config) // a fault of the folder is reported when it is read
	for _, file := range append([]string{config}, files...) {
		s.add(file)
	}
	return s
}

// Again reads the stamp of the configuration's files anew, with its calendars' files.
func (s Stamp) Again(config string) Stamp {
	now := stampOf(config)
	for _, file := range s.calendars {
		now.addCalendar(file)
	}
	return now
}

func (s *Stamp) addCalendar(file string) {
	s.calendars = append(s.calendars, file)
	s.add(file)
}

func (s *Stamp) add(file string) {
	var info fs.FileInfo
	if !s.hang {
		var err error
		if info, err = boundedfile.Stat(file); err != nil {
			info, s.hang = nil, errors.Is(err, boundedfile.ErrNoAnswer)
		}
	}
	s.Files, s.infos = append(s.Files, file), append(s.infos, info)
}

// Same reports whether no file has changed between two stamps.
func (s Stamp) Same(other Stamp) bool {
	if !slices.Equal(s.Files, other.Files) {
		return false
	}
	for i, a := range s.infos {
		b := other.infos[i]
		if (a == nil) != (b == nil) || a != nil && (!os.SameFile(a, b) || !a.ModTime().Equal(b.ModTime()) || a.Size() != b.Size()) {
			return false
		}
	}
	return true
}
