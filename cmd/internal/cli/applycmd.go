package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// maxJobsFile bounds a file of stored jobs, in bytes.
const maxJobsFile = 64 << 20

// storedForm says what the files of stored jobs look like.
const storedForm = `The file has a list jobs, as jobs export writes it: for each job its name, handler, schedule,
payload and policies, with the names that the API gives them, durations in milliseconds:

  jobs:
  - {name: report/tenant-7, handler: report, schedule: "0 6 * * *", payload: {tenant: 7}}`

// jobsFile is a file of stored jobs.
type jobsFile struct {
	Jobs []scheduler.StoredView `json:"jobs"`
}

func (a *app) jobsApplyCommand() *cobra.Command {
	var path, prune string
	var o scheduler.PutOptions
	apply := a.command("apply -f FILE [--prune LABEL] [--dry-run] [--reason TEXT]", "store the jobs of a file", wants(), func(cmd *cobra.Command, args []string) error {
		if path == "" {
			return usagef("-f is missing: the file with the jobs, or - for stdin")
		}
		file, err := a.readJobs(path)
		if err != nil {
			return err
		}
		for i := range file.Jobs {
			file.Jobs[i].ManagedBy = cmp.Or(prune, file.Jobs[i].ManagedBy)
		}
		return a.inspect(func(t tool) error {
			err := a.apply(t, file, o)
			if err == nil && prune != "" {
				err = a.prune(t, file, prune, o)
			}
			return err
		})(cmd, args)
	})
	apply.Long = `Stores the jobs of a file that are not stored as they stand there, and leaves all others alone.
All are checked before any is stored. Settings that are left out are the defaults.

With --prune the jobs of the file are stored as managed by LABEL, and stored jobs that are managed by it and are not in the
file are deleted, with their history.

` + storedForm
	apply.Flags().StringVarP(&path, "file", "f", "", "the `FILE`; - is stdin")
	apply.Flags().StringVar(&prune, "prune", "", "delete the jobs of this `LABEL` that the file has not")
	apply.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what would be done, and store nothing")
	a.reasonFlag(apply)
	return apply
}

// readJobs reads a file of stored jobs. The error names the file.
func (a *app) readJobs(path string) (file jobsFile, err error) {
	in := a.stdin
	if path != "-" {
		f, err := os.Open(path) //nolint:gosec // the operator names the file
		if err != nil {
			return file, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxJobsFile+1))
	if err != nil {
		return file, err
	}
	if len(text) > maxJobsFile {
		return file, fmt.Errorf("%s: is larger than %d MiB; part it", path, maxJobsFile>>20)
	}
	var doc yaml.Node
	var value any
	err = yaml.Unmarshal(text, &doc)
	datesAsWritten(&doc, 0)
	if err = errors.Join(err, doc.Decode(&value)); err != nil {
		return file, fmt.Errorf("%s: %w", path, err)
	}
	text, err = json.Marshal(value)
	if err != nil {
		return file, fmt.Errorf("%s: %w; write the keys as texts", path, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return file, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Jobs) == 0 {
		return file, fmt.Errorf("%s: has no jobs; write a list jobs", path)
	}
	return file, nil
}

// datesAsWritten makes texts of what YAML takes for instants, down from a depth of 0 at the document: JSON has none, and 2026-01-02 in a
// payload is meant as it is written. The bounds of a job are instants.
func datesAsWritten(n *yaml.Node, depth int) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for i, part := range n.Content {
		ofJob := n.Kind == yaml.MappingNode && depth == 3 && i%2 == 1 // document, file, list, job
		if ofJob && slices.Contains([]string{"start_at", "end_at"}, n.Content[i-1].Value) {
			continue
		}
		datesAsWritten(part, depth+1)
	}
}

// apply stores what differs.
func (a *app) apply(t tool, file jobsFile, o scheduler.PutOptions) error {
	list, err := file.list()
	if err != nil {
		return err
	}
	stored, err := t.in.StoredJobs(t.ctx)
	if err != nil {
		return err
	}
	is := make(map[string]string, len(stored))
	for _, s := range stored {
		is[s.Name] = s.Definition().Digest()
	}
	var news []scheduler.StoredView
	for i, j := range list {
		if is[j.Name] != j.Definition().Digest() {
			news = append(news, file.Jobs[i])
		}
	}
	a.say("%d of %d jobs differ from what is stored", len(news), len(list))
	if len(news) == 0 && !a.json() {
		return nil
	}
	return a.putJobs(t, news, o)
}

// prune deletes the stored jobs that a label manages and that the file does not have. One that was changed meanwhile, and may be another
// label's by now, stays; the error names it.
func (a *app) prune(t tool, file jobsFile, label string, o scheduler.PutOptions) error {
	stored, err := t.in.StoredJobs(t.ctx)
	if err != nil {
		return err
	}
	kept := make(map[string]bool, len(file.Jobs))
	for _, v := range file.Jobs {
		kept[v.Name] = true
	}
	gone := slices.DeleteFunc(stored, func(s scheduler.StoredJob) bool { return s.ManagedBy != label || kept[s.Name] })
	if o.DryRun {
		for _, s := range gone {
			a.say("job %s would be deleted", s.Name)
		}
		return nil
	}
	deleted, err := t.in.DeleteJobs(t.ctx, gone)
	for _, name := range deleted {
		a.say("job %s is deleted, with its history", name)
	}
	return err
}

// list are the jobs of a file.
func (f jobsFile) list() (list []jobs.Job, err error) {
	for _, v := range f.Jobs {
		j, bad := v.Job()
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("job %s: %w", v.Name, bad))
		}
		list = append(list, j)
	}
	return list, err
}
