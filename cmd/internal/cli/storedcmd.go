package cli

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/scheduler"
)

func (a *app) jobsPutCommand() *cobra.Command {
	var v scheduler.StoredView
	var o scheduler.PutOptions
	var payload string
	var take func()
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
			v.Name, v.Payload = args[0], text
			take()
			resolve, err := bounds()
			if err != nil {
				return err
			}
			return a.inspect(func(t tool) error {
				if err := resolve(t); err != nil {
					return err
				}
				return a.putJobs(t, []scheduler.StoredView{v}, o)
			})(cmd, args)
		})
	put.Long = `Stores a job in the namespace, or replaces a stored one. The job names a handler, which
programs add with Registry.Handle. Nodes that have it run the job within a second. Settings
that are left out are the defaults, also where a job is replaced: jobs export shows a job
with all settings, and jobs apply takes them from a file. The flags are the settings of config.yaml.

` + timeForms
	take, bounds = putFlags(put, &v), boundFlags(put, &v)
	f := put.Flags()
	f.StringVar(&payload, "payload", "", "`JSON` for each run, at most 16 KiB; - reads it from stdin")
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
		followers := followersOf(t)
		if err := t.in.DeleteJob(t.ctx, t.args[0], time.Time{}); err != nil {
			return err
		}
		if len(followers) > 0 {
			a.say("jobs that follow %s have no more ticks: %s; delete them too, or let them follow another", t.args[0], strings.Join(followers, ", "))
		}
		if a.json() {
			return printJSON(a.stdout, removedJSON{t.args[0], true})
		}
		a.say("job %s is deleted, with its history", t.args[0])
		return nil
	}))
	a.reasonFlag(remove)
	remove.Long = `Deletes a job that was stored at run time. Nodes claim nothing more of it. A run that is in
flight goes on; the history then stays until jobs remove deletes it. Jobs that follow it are named, and stay.`
	return remove
}

// followersOf are the jobs that follow the one that a command names, as far as they can be read.
func followersOf(t tool) []string {
	graph, _ := t.in.Graph(t.ctx) // the command goes on without: it tells what else there is
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
		views := viewsOf(stored)
		for i := range views {
			views[i].Version = nil
		}
		if a.json() {
			return errors.Join(printJSON(a.stdout, jobsFile{views}), err)
		}
		text, bad := yamlOf(jobsFile{views})
		if bad == nil {
			_, bad = io.WriteString(a.stdout, printable(string(text), isTerminal(a.stdout)))
		}
		return errors.Join(bad, err)
	}))
	export.Long = "Writes the stored jobs, all of them without a NAME, with all their settings.\n\n" + storedForm
	return export
}
