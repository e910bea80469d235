package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

func jobsPutCommand(a *command.App) *cobra.Command {
	var j jobs.Job
	var o ops.PutOptions
	var payload string
	var resolve func(command.Tool) error
	put := a.Command("put NAME --handler H (--schedule S | --after JOB) [--payload JSON] [--new] [--dry-run] ...", "store a job that nodes with its handler run", command.Wants("NAME"),
		func(cmd *cobra.Command, args []string) error {
			if err := command.Filled(cmd, "handler", "schedule"); err != nil {
				return err
			}
			text, err := payloadOf(a, payload)
			if err != nil {
				return err
			}
			j.Name, j.Payload = args[0], text
			jobs.Settings.Idle(&j)
			return a.Connect(func(t command.Tool) error {
				if err := resolve(t); err != nil {
					return err
				}
				return putJobs(t, []jobs.Job{j}, o)
			})(cmd, args)
		})
	put.Long = `Stores a job in the namespace, or replaces a stored one. The job names a handler, which
programs add with Registry.Handle. Nodes that have it run the job within a second. Settings
that are left out are the defaults, also where a job is replaced: jobs export shows a job
with all settings, and jobs apply takes them from a file. The flags are the settings of config.yaml.

` + command.TimeForms
	put.Example = `escapement jobs put report/tenant-7 --handler report --schedule "0 6 * * *" --payload '{"tenant": 7}'
escapement jobs put report/tenant-7 --handler report --schedule "0 7 * * *" --time-zone Europe/Berlin --dry-run
escapement jobs put mail/tenant-7 --handler mail --after report/tenant-7 --when any --retry-max 3`
	putFlags(put, &j)
	resolve = boundFlags(put, &j)
	f := put.Flags()
	f.StringVar(&payload, "payload", "", "`JSON` for each run, at most 16 KiB; - reads it from stdin")
	f.BoolVar(&o.New, "new", false, "refuse to replace a job")
	f.BoolVar(&o.DryRun, "dry-run", false, "check it, and store nothing")
	a.ReasonFlag(put)
	return put
}

// putJobs stores jobs, and shows them.
func putJobs(t command.Tool, list []jobs.Job, o ops.PutOptions) error {
	stored, err := t.Client.PutJobs(t.Ctx, list, o)
	if err != nil && len(stored) == 0 {
		return err
	}
	if t.JSON() {
		shown, bad := storedDocuments(stored, true)
		return errors.Join(bad, print.JSON(t.Stdout, shown), err)
	}
	for _, s := range stored {
		if o.DryRun {
			t.Report("job %s could be stored", s.Name)
		} else {
			t.Report("job %s is stored: version %s", s.Name, ops.FormatTime(s.Version))
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

func jobsDeleteCommand(a *command.App) *cobra.Command {
	remove := a.Command("delete NAME [--reason TEXT]", "delete a job, with its history", command.Wants("NAME"), onJob(a, func(t command.Tool) error {
		followers := followersOf(t)
		if err := t.Client.Delete(t.Ctx, t.Args[0], time.Time{}); err != nil {
			return err
		}
		if len(followers) > 0 {
			a.Report("jobs that follow %s have no more ticks: %s; delete them too, or let them follow another", t.Args[0], strings.Join(followers, ", "))
		}
		if a.JSON() {
			return print.JSON(a.Stdout, removedJSON{t.Args[0], true})
		}
		a.Report("job %s is deleted, with its history", t.Args[0])
		return nil
	}))
	a.ReasonFlag(remove)
	remove.Aliases = []string{"remove"}
	remove.Long = `Deletes all that Redis has of a job. Jobs that follow it are named, and stay.

Nodes claim nothing more of a job that was stored at run time. The deletion waits for its runs
in flight, for five seconds at most. When one goes on even then, the history stays: repeat the
command later.

A job of a configuration or a program is refused while a run of it is in flight, or a living
node holds it: the node would register it anew. Take the job out of the configuration of all
nodes first.`
	remove.Example = `escapement jobs delete settle-orders
escapement jobs delete report/tenant-7 --reason "the tenant left"`
	return remove
}

// followersOf returns the readable followers of the job that a command names.
func followersOf(t command.Tool) []string {
	graph, _ := t.Client.Graph(t.Ctx) // the command goes on without it
	for _, j := range graph {
		if j.Name == t.Args[0] {
			return j.Followers
		}
	}
	return nil
}

func jobsExportCommand(a *command.App) *cobra.Command {
	export := a.Command("export [NAME...]", "write stored jobs as a file for jobs apply", nil, a.Connect(func(t command.Tool) error {
		stored, err := t.Client.StoredJobs(t.Ctx, t.Args...)
		if err != nil && len(stored) == 0 {
			return err
		}
		list, bad := storedDocuments(stored, false)
		if bad != nil {
			return bad
		}
		file := map[string]any{"jobs": list}
		if a.JSON() {
			return errors.Join(print.JSON(a.Stdout, file), err)
		}
		text, bad := config.YAML(file)
		if bad == nil {
			_, bad = io.WriteString(a.Stdout, print.Printable(string(text), print.IsTerminal(a.Stdout)))
		}
		return errors.Join(bad, err)
	}))
	export.Long = "Writes the stored jobs, all of them without a NAME, with all their settings.\n\n" + storedForm
	export.Example = `escapement jobs export > tenants.yaml
escapement jobs export report/tenant-7 -o json`
	return export
}
