package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

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

func (a *app) jobsPutCommand() *cobra.Command {
	var v scheduler.StoredView
	var o scheduler.PutOptions
	var payload string
	var timeout, ttl, within time.Duration
	put := a.command("put NAME --handler H --schedule S [--payload JSON] [--new] [--dry-run] ...", "store a job that nodes with its handler run", wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if err := filled(cmd, "handler", "schedule"); err != nil {
				return err
			}
			text, err := a.payload(payload)
			if err != nil {
				return err
			}
			v.Name, v.Payload = args[0], text
			v.TimeoutMS, v.TTLMS, v.StartWithinMS = timeout.Milliseconds(), ttl.Milliseconds(), within.Milliseconds()
			return a.inspect(func(t tool) error { return a.putJobs(t, []scheduler.StoredView{v}, o) })(cmd, args)
		})
	put.Long = `Stores a job in the namespace, or replaces a stored one. The job names a handler, which
programs add with Registry.Handle. Nodes that have it run the job within a second. Settings
that are left out are the defaults, also where a job is replaced: jobs export shows a job
with all settings, and jobs apply takes them from a file.`
	f := put.Flags()
	f.StringVar(&v.Handler, "handler", "", "the `name` of the handler that its runs call")
	f.StringVar(&v.Schedule, "schedule", "", "a cron `expression`")
	f.StringVar(&v.TimeZone, "time-zone", "", "the `zone` of the schedule; default UTC")
	f.StringVar(&payload, "payload", "", "`JSON` for each run, at most 16 KiB; - reads it from stdin")
	f.StringVar(&v.Overlap, "overlap", "", "a `word`: skip, queue, replace or allow")
	f.StringVar(&v.CatchUp, "catch-up", "", "a `word`: latest, all or none")
	f.DurationVar(&within, "start-within", 0, "how late a run may start, a `duration`")
	f.DurationVar(&timeout, "timeout", 0, "when a run is ended, a `duration`")
	f.DurationVar(&ttl, "ttl", 0, "the lease time of a run, a `duration`")
	f.BoolVar(&o.New, "new", false, "refuse to replace a job")
	f.BoolVar(&o.DryRun, "dry-run", false, "check it, and store nothing")
	a.reasonFlag(put)
	return put
}

// putJobs stores jobs, and shows them.
func (a *app) putJobs(t tool, views []scheduler.StoredView, o scheduler.PutOptions) error {
	file := jobsFile{views}
	list, err := file.list()
	if err != nil {
		return err
	}
	stored, err := t.in.PutJobs(t.ctx, list, o)
	if err != nil && len(stored) == 0 {
		return err
	}
	if a.json() {
		return errors.Join(printJSON(a.stdout, viewsOf(stored)), err)
	}
	for _, s := range stored {
		if o.DryRun {
			a.say("job %s could be stored", s.Name)
		} else {
			a.say("job %s is stored: version %s", s.Name, scheduler.Stamp(s.Version))
		}
	}
	return err
}

func viewsOf(stored []scheduler.StoredJob) []scheduler.StoredView {
	views := make([]scheduler.StoredView, len(stored))
	for i, s := range stored {
		views[i] = s.View()
	}
	return views
}

func (a *app) jobsDeleteCommand() *cobra.Command {
	remove := a.command("delete NAME [--reason TEXT]", "delete a stored job, with its history", wants("NAME"), a.inspectJob(func(t tool) error {
		if err := t.in.DeleteJob(t.ctx, t.args[0], time.Time{}); err != nil {
			return err
		}
		if a.json() {
			return printJSON(a.stdout, removedJSON{t.args[0], true})
		}
		a.say("job %s is deleted, with its history", t.args[0])
		return nil
	}))
	a.reasonFlag(remove)
	remove.Long = `Deletes a job that was stored at run time. Nodes claim nothing more of it. A run that is in
flight goes on; the history then stays until jobs remove deletes it.`
	return remove
}

func (a *app) jobsExportCommand() *cobra.Command {
	export := a.command("export [NAME...]", "write stored jobs as a file for jobs apply", nil, a.inspect(func(t tool) error {
		stored, err := t.in.StoredJobs(t.ctx, t.args...)
		if err != nil && len(stored) == 0 {
			return err
		}
		views := viewsOf(stored)
		for i := range views {
			views[i].Version = nil
		}
		if a.json() {
			return errors.Join(printJSON(a.stdout, jobsFile{views}), err)
		}
		text, bad := yamlOf(jobsFile{views})
		if bad == nil {
			_, bad = a.stdout.Write(text)
		}
		return errors.Join(bad, err)
	}))
	export.Long = "Writes the stored jobs, all of them without a NAME, with all their settings.\n\n" + storedForm
	return export
}

// yamlOf writes a value as YAML with the names of its JSON.
func yamlOf(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var node yaml.Node // keeps the order, and JSON is YAML
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	plain(&node)
	return yaml.Marshal(&node)
}

// plain takes the style of JSON from a document.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, part := range n.Content {
		plain(part)
	}
}

func (a *app) jobsApplyCommand() *cobra.Command {
	var path string
	var o scheduler.PutOptions
	apply := a.command("apply -f FILE [--dry-run] [--reason TEXT]", "store the jobs of a file", wants(), func(cmd *cobra.Command, args []string) error {
		if path == "" {
			return usagef("-f is missing: the file with the jobs, or - for stdin")
		}
		file, err := a.readJobs(path)
		if err != nil {
			return err
		}
		return a.inspect(func(t tool) error { return a.apply(t, file, o) })(cmd, args)
	})
	apply.Long = `Stores the jobs of a file that are not stored as they stand there, and leaves all others alone.
All are checked before any is stored. Settings that are left out are the defaults.

` + storedForm
	apply.Flags().StringVarP(&path, "file", "f", "", "the `FILE`; - is stdin")
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
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
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
