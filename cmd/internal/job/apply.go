package job

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// storedForm describes the files of stored jobs.
const storedForm = `The file has a list jobs, as jobs export writes it: for each job its name, handler, schedule,
payload and policies, written as in config.yaml. A duration is 90s, 5m or 2d:

  jobs:
  - {name: report/tenant-7, handler: report, schedule: "0 6 * * *", timeout: 5m, payload: {tenant: 7}}`

func jobsApplyCommand(a *command.App) *cobra.Command {
	var path, label string
	var o ops.PutOptions
	apply := a.Command("apply -f FILE [--prune LABEL] [--dry-run] [--reason TEXT]", "store the jobs of a file", command.Wants(), func(cmd *cobra.Command, args []string) error {
		if path == "" {
			return command.Usagef("-f is missing: the file with the jobs, or - for stdin")
		}
		list, err := readJobs(a, path)
		if err != nil {
			return err
		}
		return a.Connect(func(t command.Tool) error {
			stored, err := t.Client.StoredJobs(t.Ctx)
			if err != nil {
				return err
			}
			var gone []ops.StoredJob
			if label != "" {
				graph, err := t.Client.Graph(t.Ctx)
				if err != nil && graph == nil {
					return err
				}
				if gone, err = prune(list, stored, graph, label); err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
			}
			if err := apply(t, list, stored, o); err != nil {
				return err
			}
			return deleteJobs(t, gone, o)
		})(cmd, args)
	})
	apply.Long = `Stores the jobs of a file that are not stored as they stand there, and leaves all others alone.
All are checked before any is stored. Settings that are left out are the defaults.

With --prune the jobs of the file are stored as managed by LABEL, and stored jobs that are managed by
it and are not in the file are deleted, with their history. Nothing is done when a job that stays,
also a program's, follows one of those, or when a job of the file is managed by another label: say
managed_by in the file to take it over.

` + storedForm
	apply.Example = `escapement jobs apply -f tenants.yaml --dry-run
escapement jobs apply -f tenants.yaml --prune tenants
escapement jobs apply -f tenants.yaml --reason "tenants of December"`
	apply.Flags().StringVarP(&path, "file", "f", "", "the `FILE`; - is stdin")
	apply.Flags().StringVar(&label, "prune", "", "delete the jobs of this `LABEL` that the file has not")
	apply.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what would be done, and store nothing")
	a.ReasonFlag(apply)
	return apply
}

// apply stores the jobs that differ.
func apply(t command.Tool, list []jobs.Job, stored []ops.StoredJob, o ops.PutOptions) error {
	is := make(map[string]ops.StoredJob, len(stored))
	for _, s := range stored {
		is[s.Name] = s
	}
	var news []jobs.Job
	for _, j := range list {
		s, there := is[j.Name]
		var differ []string
		if there {
			differ = settingsThatDiffer(s.Job, j)
		}
		if there && len(differ) == 0 {
			continue
		}
		news = append(news, j)
		switch {
		case !o.DryRun:
		case there:
			t.Report("job %s differs: %s", j.Name, strings.Join(differ, ", "))
		default:
			t.Report("job %s is new", j.Name)
		}
	}
	t.Report("%d of %d jobs differ from what is stored", len(news), len(list))
	if len(news) == 0 && !t.JSON() {
		return nil
	}
	return putJobs(t, news, o)
}

// settingsThatDiffer names the settings in which two jobs differ, with their defaults.
func settingsThatDiffer(a, b jobs.Job) (names []string) {
	one, two := a.Definition().Job, b.Definition().Job
	for _, s := range jobs.Settings.Diff(&one, &two) {
		names = append(names, s.Name)
	}
	return names
}

// prune puts a label on the jobs of the file, and returns the label's stored jobs that the file
// lacks. It returns ErrRefused for a job of another label, and for a job that stays, also a
// program's, and follows one to be deleted.
func prune(list []jobs.Job, stored []ops.StoredJob, graph []ops.GraphJob, label string) (gone []ops.StoredJob, err error) {
	after := make(map[string][]string) // of the jobs that stay
	in := make(map[string]string, len(list))
	for i, j := range list {
		after[j.Name], in[j.Name] = j.After, j.ManagedBy
		list[i].ManagedBy = label
	}
	var faults []error
	goes := make(map[string]bool)
	for _, s := range stored {
		written, has := in[s.Name]
		switch {
		case has && s.ManagedBy != "" && s.ManagedBy != label && written != label:
			faults = append(faults, fmt.Errorf("%w: job %s: managed_by: %q manages it; take it out of the file, or write managed_by: %s for it to take it over", ops.ErrRefused, s.Name, s.ManagedBy, label))
		case has:
		case s.ManagedBy == label:
			gone, goes[s.Name] = append(gone, s), true
		default:
			after[s.Name] = s.After
		}
	}
	for _, j := range graph {
		if _, known := after[j.Name]; !known && !goes[j.Name] {
			after[j.Name] = j.After
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		for _, upstream := range after[name] {
			if goes[upstream] {
				faults = append(faults, fmt.Errorf("%w: job %s: after: %q would be deleted, for the file has it no longer; keep that job in the file, or let this one follow another; to delete it all the same: jobs delete", ops.ErrRefused, name, upstream))
			}
		}
	}
	return gone, errors.Join(faults...)
}

// deleteJobs deletes the stored jobs that a file no longer has. A job that was changed meanwhile,
// and may have another label by now, stays; the error names it.
func deleteJobs(t command.Tool, gone []ops.StoredJob, o ops.PutOptions) error {
	if o.DryRun {
		for _, s := range gone {
			t.Report("job %s would be deleted", s.Name)
		}
		return nil
	}
	if len(gone) == 0 {
		return nil
	}
	deleted, err := t.Client.DeleteJobs(t.Ctx, gone)
	for _, name := range deleted {
		t.Report("job %s is deleted, with its history", name)
	}
	return err
}
