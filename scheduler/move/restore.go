package move

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// ErrBadBackup is returned for a file that is no backup, that is not complete, or that was changed.
var ErrBadBackup = errors.New("not a backup that can be restored")

// RestoreOptions say what is restored, and where.
type RestoreOptions struct {
	// Namespace is where the jobs go; default "escapement". It is created when it is not there.
	Namespace string
	// Partitions is the number that a namespace is created with; default 1, and 64 on a Cluster.
	Partitions int
	// Pattern restricts it to jobs whose names match, as in path.Match; default all jobs.
	Pattern string
	// DryRun reads the backup and looks which jobs are there, and writes nothing.
	DryRun bool
}

// Restored is what came of a restore.
type Restored struct {
	Totals
	// Exists are the jobs that are in the namespace already. They stay as they are.
	Exists []string `json:"exists"`
	// Created says that the namespace was not there.
	Created bool `json:"created"`
}

// Restore writes the jobs of a backup into a namespace that has none of these names. Each job comes whole or not at all: with
// its cursor, its pause, what waits, and its history. Its next token is greater than any that it was given. Ticks since the
// backup are treated as after an outage, by the job's catch_up; a run that was in flight lapses and is recorded as abandoned. The
// backup is read twice: nothing is written of one with an error in it. Restore may be repeated. It returns ErrBadBackup,
// ledger.ErrRefused when a move has closed the namespace, and locking.ErrUnreachable.
func Restore(ctx context.Context, client redis.UniversalClient, backup io.ReadSeeker, o RestoreOptions) (Restored, error) {
	o.Namespace = cmp.Or(o.Namespace, ledger.DefaultNamespace)
	r := restore{client: client, backup: backup, o: o, all: ledger.NewDigest(), out: Restored{Exists: []string{}}}
	if err := r.run(ctx); err != nil {
		return r.out, fmt.Errorf("restore namespace %s at %s: %w", o.Namespace, redisconn.Addr(client), err)
	}
	return r.out, nil
}

// restore is one restore.
type restore struct {
	client redis.UniversalClient
	backup io.ReadSeeker
	o      RestoreOptions
	head   backupHead
	all    *ledger.Digest // of what is to be restored
	out    Restored
}

func (r *restore) run(ctx context.Context) error {
	if _, err := path.Match(r.o.Pattern, ""); err != nil {
		return fmt.Errorf("%w: the pattern %q is none: use * ? and [a-z] as in file names", ledger.ErrRefused, r.o.Pattern)
	}
	if err := r.check(); err != nil {
		return err
	}
	r.out.Totals = totals(r.all)
	led, err := ledger.OpenExisting(ctx, r.client, ledger.Config{Namespace: r.o.Namespace})
	if errors.Is(err, ledger.ErrNoNamespace) {
		r.out.Created = true
		if r.o.DryRun {
			return nil
		}
		led, err = ledger.Open(ctx, r.client, ledger.Config{Namespace: r.o.Namespace, Partitions: r.o.Partitions, Generation: r.head.Generation})
	}
	if err != nil {
		return err
	}
	if r.o.DryRun {
		return r.look(ctx, led)
	}
	into := led.Importer(r.head.Partitions)
	err = r.each(func(d ledger.Document) error {
		if !r.wants(d) {
			return nil
		}
		return into.Import(ctx, d)
	})
	if err != nil {
		return err
	}
	exists, err := into.Flush(ctx)
	r.out.Exists = append(r.out.Exists, exists...)
	return err
}

// wants says whether a document is to be restored. Unique keys of no known job always are: elsewhere nobody asks for them.
func (r *restore) wants(d ledger.Document) bool {
	ok, _ := path.Match(r.o.Pattern, d.Job) // checked before
	return ok || r.o.Pattern == "" || d.Job == ""
}

// look notes which jobs are there already.
func (r *restore) look(ctx context.Context, led *ledger.Ledger) error {
	stored, err := led.Jobs(ctx)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(stored))
	for _, s := range stored {
		there[s.Entry.Job] = true
	}
	return r.each(func(d ledger.Document) error {
		if r.wants(d) && d.Entry != "" && there[d.Job] {
			r.out.Exists = append(r.out.Exists, d.Job)
		}
		return nil
	})
}

// check reads the whole backup: that it is complete and unchanged, and that this version can restore each job.
func (r *restore) check() error {
	whole, names := ledger.NewDigest(), make(map[string]bool)
	end, err := r.read(func(d ledger.Document) error {
		if err := d.Check(); err != nil {
			return err
		}
		if d.Job != "" && names[d.Job] {
			return fmt.Errorf("%w: job %q is there twice", ErrBadBackup, d.Job)
		}
		names[d.Job] = true
		whole.Add(d)
		if r.wants(d) {
			r.all.Add(d)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case end.Digest != whole.Sum():
		return fmt.Errorf("%w: its lines were changed since it was written (digest %.12s, and %.12s is noted); undo that, or take another one", ErrBadBackup, whole.Sum(), end.Digest)
	case r.o.Pattern != "" && r.all.Jobs == 0:
		return fmt.Errorf("%w: no job in it matches %q", ErrBadBackup, r.o.Pattern)
	}
	return nil
}

// each calls f for each document of a backup that was checked.
func (r *restore) each(f func(ledger.Document) error) error {
	_, err := r.read(f)
	return err
}

// read reads the backup from its beginning.
func (r *restore) read(f func(ledger.Document) error) (end backupEnd, err error) {
	if _, err := r.backup.Seek(0, io.SeekStart); err != nil {
		return end, err
	}
	lines, n := bufio.NewReader(r.backup), 0
	line := func(into any) error {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: it ends in line %d, before its end was written; take another one", ErrBadBackup, n+1)
		}
		if err != nil {
			return err
		}
		n++
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrBadBackup, n, err)
		}
		return nil
	}
	r.head = backupHead{}
	switch err := line(&r.head); {
	case r.head.Backup != "" && r.head.Format != backupFormat:
		return end, fmt.Errorf("%w: its format is %d, and this version knows %d; restore it with the version that wrote it", ErrBadBackup, r.head.Format, backupFormat)
	case err != nil:
		return end, err
	case r.head.Backup == "":
		return end, fmt.Errorf("%w: its first line is not that of a backup", ErrBadBackup)
	}
	for {
		var next struct {
			ledger.Document
			End *backupEnd `json:"end"`
		}
		if err := line(&next); err != nil {
			return end, err
		}
		if next.End != nil {
			if next.End.Documents != n-2 {
				return end, fmt.Errorf("%w: it has %d documents, and %d are noted in line %d", ErrBadBackup, n-2, next.End.Documents, n)
			}
			return *next.End, nil
		}
		if err := f(next.Document); err != nil {
			return end, fmt.Errorf("line %d: %w", n, err)
		}
	}
}
