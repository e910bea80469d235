package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

func (a *app) jobsPutCommand() *cobra.Command {
	var j jobs.Job
	var o ops.PutOptions
	var payload string
	var bounds func() (func(tool) error, error)
	put := a.command("put NAME --handler H (--schedule S | --after JOB) [--payload JSON] [--new] [--dry-run] ...", "store a job that nodes with its handler run", wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if err := filled(cmd, "handler", "schedule"); err != nil {
				return err
			}
			text, err := a.payload(payload)
			if err != nil {
				return err
			}
			j.Name, j.Payload = args[0], text
			jobs.Settings.Idle(&j)
			resolve, err := bounds()
			if err != nil {
				return err
			}
			return a.inspect(func(t tool) error {
				if err := resolve(t); err != nil {
					return err
				}
				return a.putJobs(t, []jobs.Job{j}, o)
			})(cmd, args)
		})
	put.Long = `Stores a job in the namespace, or replaces a stored one. The job names a handler, which
programs add with Registry.Handle. Nodes that have it run the job within a second. Settings
that are left out are the defaults, also where a job is replaced: jobs export shows a job
with all settings, and jobs apply takes them from a file. The flags are the settings of config.yaml.

` + timeForms
	putFlags(put, &j)
	bounds = boundFlags(put, &j)
	f := put.Flags()
	f.StringVar(&payload, "payload", "", "`JSON` for each run, at most 16 KiB; - reads it from stdin")
	f.BoolVar(&o.New, "new", false, "refuse to replace a job")
	f.BoolVar(&o.DryRun, "dry-run", false, "check it, and store nothing")
	a.reasonFlag(put)
	return put
}

// putJobs stores jobs, and shows them.
func (a *app) putJobs(t tool, list []jobs.Job, o ops.PutOptions) error {
	stored, err := t.in.PutJobs(t.ctx, list, o)
	if err != nil && len(stored) == 0 {
		return err
	}
	if a.json() {
		shown, bad := storedDocuments(stored, true)
		return errors.Join(bad, print.JSON(a.stdout, shown), err)
	}
	for _, s := range stored {
		if o.DryRun {
			a.say("job %s could be stored", s.Name)
		} else {
			a.say("job %s is stored: version %s", s.Name, ops.FormatTime(s.Version))
		}
	}
	return err
}

// storedDocuments returns stored jobs as they are shown, with all settings in use, and with their
// versions.
func storedDocuments(stored []ops.StoredJob, versions bool) ([]json.RawMessage, error) {
	shown := make([]json.RawMessage, len(stored))
	for i, s := range stored {
		text, err := jobs.Settings.EncodeSome(&s.Job, func(of spec.Setting) bool { return jobs.Settings.Given(&s.Job, of) || inUse(&s.Job, of) })
		if err != nil {
			return nil, err
		}
		if versions && !s.Version.IsZero() {
			text = fmt.Appendf(text[:len(text)-1], `,"version":%q}`, ops.FormatTime(s.Version))
		}
		shown[i] = text
	}
	return shown, nil
}

// inUse reports whether a setting with the default word applies to a job.
func inUse(j *jobs.Job, s spec.Setting) bool {
	if s.Kind != spec.Word || s.Unscheduled && len(j.After) > 0 {
		return false
	}
	with, known := spec.Named(s.With)
	return s.With == "" || known && jobs.Settings.Given(j, with)
}

// removedJSON is the output of jobs delete.
type removedJSON struct {
	Name    string `json:"name"`
	Removed bool   `json:"removed"`
}

func (a *app) jobsDeleteCommand() *cobra.Command {
	remove := a.command("delete NAME [--reason TEXT]", "delete a job, with its history", wants("NAME"), a.inspectJob(func(t tool) error {
		followers := followersOf(t)
		if err := t.in.Delete(t.ctx, t.args[0], time.Time{}); err != nil {
			return err
		}
		if len(followers) > 0 {
			a.say("jobs that follow %s have no more ticks: %s; delete them too, or let them follow another", t.args[0], strings.Join(followers, ", "))
		}
		if a.json() {
			return print.JSON(a.stdout, removedJSON{t.args[0], true})
		}
		a.say("job %s is deleted, with its history", t.args[0])
		return nil
	}))
	a.reasonFlag(remove)
	remove.Aliases = []string{"remove"}
	remove.Long = `Deletes all that Redis has of a job. Jobs that follow it are named, and stay.

Nodes claim nothing more of a job that was stored at run time. The deletion waits for its runs
in flight, for five seconds at most. When one goes on even then, the history stays: repeat the
command later.

A job of a configuration or a program is refused while a run of it is in flight, or a living
node holds it: the node would register it anew. Take the job out of the configuration of all
nodes first.`
	return remove
}

// followersOf returns the readable followers of the job that a command names.
func followersOf(t tool) []string {
	graph, _ := t.in.Graph(t.ctx) // the command goes on without it
	for _, j := range graph {
		if j.Name == t.args[0] {
			return j.Followers
		}
	}
	return nil
}

func (a *app) jobsExportCommand() *cobra.Command {
	export := a.command("export [NAME...]", "write stored jobs as a file for jobs apply", nil, a.inspect(func(t tool) error {
		stored, err := t.in.StoredJobs(t.ctx, t.args...)
		if err != nil && len(stored) == 0 {
			return err
		}
		list, bad := storedDocuments(stored, false)
		if bad != nil {
			return bad
		}
		file := map[string]any{"jobs": list}
		if a.json() {
			return errors.Join(print.JSON(a.stdout, file), err)
		}
		text, bad := config.YAML(file)
		if bad == nil {
			_, bad = io.WriteString(a.stdout, print.Printable(string(text), print.IsTerminal(a.stdout)))
		}
		return errors.Join(bad, err)
	}))
	export.Long = "Writes the stored jobs, all of them without a NAME, with all their settings.\n\n" + storedForm
	return export
}
