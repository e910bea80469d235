package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/boundedfile"
	"github.com/escapement/escapement/scheduler/move"
	"github.com/escapement/escapement/scheduler/ops"
)

// Backup makes the command backup.
func Backup(a *command.App) *cobra.Command {
	var force bool
	c := a.Command("backup FILE [--force]", "write every job of the namespace to a file", command.Wants("FILE"), func(cmd *cobra.Command, args []string) error {
		var to print.OutFile
		if args[0] != "-" {
			var err error
			if to, err = print.FindOutFile(args[0], force); errors.Is(err, print.ErrFileThere) {
				err = fmt.Errorf("%w, or replace it with --force", err)
			}
			if err != nil {
				return fmt.Errorf("write the backup: %w", err)
			}
		}
		return a.ConnectRedis(cmd, func(l *config.Loaded, client redis.UniversalClient) error {
			err := backup(a, l, client, args[0], to)
			return noted(a, l, client, ops.Action{Name: "backup", Target: args[0]}, err)
		})
	})
	c.Long = `Writes a JSON document a line for every job: its definition, cursor, token, pause, pending runs,
runs in flight, history and outputs. FILE appears when the backup is complete; - is stdout, and a
device or a pipe is written to. A FILE that is there is refused with exit code 5; with --force the
backup takes its place. Of a symbolic link that is the file that it points to. Nodes may go on
meanwhile: each job is read at one instant, after the job that it follows.

Not in a backup: nodes, drained names, and locks of business code. Payloads and outputs
are in it, so the file is readable by its owner only.

Exits with 1 when there is a record that this version cannot read; it is named, and the rest
is in the file.`
	c.Example = `escapement backup jobs.jsonl
escapement backup - | gzip > jobs-$(date +%F).jsonl.gz`
	c.Flags().BoolVar(&force, "force", false, "replace FILE if it is there")
	return c
}

func backup(a *command.App, l *config.Loaded, client redis.UniversalClient, file string, to print.OutFile) error {
	ctx, stop := a.Interruptible()
	defer stop()
	if file == "-" {
		totals, left, err := move.Backup(ctx, client, l.Namespace, a.Stdout)
		if err != nil {
			return err
		}
		return backedUp(a, l, "stdout", totals, left)
	}
	var totals move.Totals
	var left []string
	err := to.Write(ctx, func(w io.Writer) (err error) {
		totals, left, err = move.Backup(ctx, client, l.Namespace, w)
		return err
	})
	if err != nil {
		return err
	}
	err = backedUp(a, l, file, totals, left)
	if a.JSON() {
		err = errors.Join(print.JSON(a.Stdout, totals), err)
	}
	return err
}

// backedUp prints the contents of a backup; the error lists the missing records.
func backedUp(a *command.App, l *config.Loaded, file string, t move.Totals, left []string) error {
	a.Report("%s of %s written to %s: %s in flight, %s, %s of history", print.Many(t.Jobs, "job"), l.Namespace, file, print.Many(t.Running, "run"),
		print.Many(t.Pending, "pending run"), print.Many(t.Rows, "row"))
	if len(left) > 0 {
		return fmt.Errorf("not in the backup, for this version cannot read it: %s", strings.Join(left, "; "))
	}
	return nil
}

// Restore makes the command restore.
func Restore(a *command.App) *cobra.Command {
	var o move.RestoreOptions
	c := a.Command("restore FILE [--job PATTERN] [--dry-run]", "write jobs of a backup into the namespace", command.Wants("FILE"), func(cmd *cobra.Command, args []string) error {
		if err := command.Filled(cmd, "job"); err != nil {
			return err
		}
		if _, err := path.Match(o.Pattern, ""); err != nil {
			return command.Usagef("--job %q is no pattern: use * ? and [a-z] as in file names", o.Pattern)
		}
		return a.ConnectRedis(cmd, func(l *config.Loaded, client redis.UniversalClient) error {
			err := restore(a, l, client, args[0], o)
			if o.DryRun {
				return err
			}
			return noted(a, l, client, ops.Action{Name: "restore", Target: args[0], Detail: o.Pattern}, err)
		})
	})
	c.Long = `Writes the jobs of a backup into a namespace that does not have them. The namespace is created when
it is not there, with redis.partitions partitions; the number may be another one than before. Stop
the nodes first, or they register their jobs anew before the backup has brought them. A job that is
there stays as it is, and is named: exit code 5.

Each job goes on from its cursor: ticks since the backup are treated as after an outage, by the
job's catch_up; those that are at most 10 s late run in any case. A run that was in flight is recorded as abandoned when its lease has lapsed, and
runs again where on_crash says so. Tokens are greater than all that were given before, if the clock of
this Redis is right; it is refused when it is behind the backup. Ticks that
ran after the backup was taken may so run once more: the backup does not know of them.

FILE is checked first, and nothing is written when there is an error in it; - is stdin.`
	c.Example = `escapement restore jobs.jsonl --dry-run
escapement restore jobs.jsonl --job 'billing-*'
escapement restore -`
	c.Flags().StringVar(&o.Pattern, "job", "", "only jobs whose names match the `pattern`, as of file names: 'billing-*'")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "check the file, and say what would be restored; write nothing")
	return c
}

func restore(a *command.App, l *config.Loaded, client redis.UniversalClient, file string, o move.RestoreOptions) error {
	ctx, stop := a.Interruptible()
	defer stop()
	backup, done, err := open(a, file)
	if err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	defer done()
	o.Namespace, o.Partitions = l.Namespace, l.Redis.Partitions
	r, err := move.Restore(ctx, client, backup, o)
	if err != nil {
		return err
	}
	if a.JSON() {
		if err := print.JSON(a.Stdout, r); err != nil {
			return err
		}
	}
	what, n := "restored", r.Jobs-int64(len(r.Exists))
	if o.DryRun {
		what = "would be restored"
	}
	a.Report("%s %s to %s", print.Many(n, "job"), what, l.Namespace)
	if r.Generation != r.Active {
		a.Report("the backup is of generation %q, and %q is active here: nodes stay on standby for these jobs until `generations promote %q`", r.Generation, r.Active, r.Active)
	}
	if len(r.Exists) > 0 {
		not, stay := errExists, "stay"
		if o.DryRun {
			not, stay = errWouldExist, "would stay"
		}
		return fmt.Errorf("%w: %s %s as they are, for the namespace has them: %s; to restore one, stop the nodes that hold it and `jobs delete` it first",
			not, print.Many(int64(len(r.Exists)), "job"), stay, firstNames(r.Exists))
	}
	return nil
}

// errExists is returned when a backup has jobs that the namespace has too.
var errExists = command.WithCode(command.ExitRefused, errors.New("not everything was restored"))

// errWouldExist is errExists of a dry run.
var errWouldExist = command.WithCode(command.ExitRefused, errors.New("not everything would be restored"))

// firstNames are the first ten of them.
func firstNames(all []string) string {
	if len(all) > 10 {
		return strings.Join(all[:10], ", ") + fmt.Sprintf(" and %d more", len(all)-10)
	}
	return strings.Join(all, ", ")
}

// open opens a file to be read twice; stdin, and a pipe that a shell has opened, is copied into a
// private file.
func open(a *command.App, file string) (r io.ReadSeeker, done func(), err error) {
	from := a.Stdin
	if file != "-" {
		f, err := boundedfile.Open(file)
		if err != nil {
			return nil, nil, err
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return f, func() { _ = f.Close() }, nil
		}
		defer f.Close()
		from = f
	}
	f, err := os.CreateTemp("", "escapement-restore-*")
	if err != nil {
		return nil, nil, err
	}
	later := os.Remove(f.Name()) != nil // at once, because this process may be killed; some systems remove no open file
	done = func() {
		_ = f.Close()
		if later {
			_ = os.Remove(f.Name())
		}
	}
	if _, err := io.Copy(f, from); err != nil {
		done()
		return nil, nil, err
	}
	return f, done, nil
}

// noted records an operation on Redis itself in the audit.
func noted(a *command.App, l *config.Loaded, client redis.UniversalClient, what ops.Action, result error) error {
	in, err := ops.New(client, l.Namespace)
	if err != nil {
		return cmp.Or(result, err)
	}
	return in.As(a.Actor()).Note(context.Background(), what, result)
}
