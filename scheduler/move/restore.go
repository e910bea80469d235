package move

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// ErrBadBackup is returned for a file that is no backup, that is not complete, or that was changed.
var ErrBadBackup = errors.New("not a backup that can be restored")

// RestoreOptions select the jobs to restore and their destination.
type RestoreOptions struct {
	// Namespace is the destination; default "escapement". It is created when it does not exist.
	Namespace string
	// Partitions is the number that a namespace is created with; default 1, and 64 on a Cluster.
	Partitions int
	// Pattern restricts it to jobs whose names match, as in path.Match; default all jobs.
	Pattern string
	// DryRun reads the backup and looks which jobs are there, and writes nothing.
	DryRun bool
}

// Restored is the result of a restore.
type Restored struct {
	Totals
	// Exists are the jobs that are in the namespace already. They stay as they are.
	Exists []string `json:"exists"`
	// Created: the namespace did not exist.
	Created bool `json:"created"`
	// Generation is the active generation of the backup, Active the one of the namespace. Where
	// they differ, nodes are on standby for the restored jobs until Active is promoted.
	Generation string `json:"generation"`
	Active     string `json:"active"`
}

// Restore writes the jobs of a backup into a namespace that has none of these names. Each job is
// restored whole or not at all, and after its followers: with its cursor, its pause, its pending
// runs, and its history. Its next token is greater than every earlier one. Ticks since the backup
// are treated as after an outage, by the job's catch_up; a run that was in flight lapses and is
// recorded as abandoned. The whole backup is read first: a backup with an error is not written at
// all. Restore may be repeated. It returns ErrBadBackup, ledger.ErrRefused when a move has closed
// the namespace or when Redis' clock is behind the backup, and locking.ErrUnreachable.
func Restore(ctx context.Context, client redis.UniversalClient, backup io.ReadSeeker, o RestoreOptions) (Restored, error) {
	o.Namespace = cmp.Or(o.Namespace, ledger.DefaultNamespace)
	r := restore{client: client, backup: backup, o: o, all: export.NewDigest(), out: Restored{Exists: []string{}}}
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
	wanted []place        // of the documents to be restored, in the order of the backup
	all    *export.Digest // of these
	out    Restored
}

// place is a line of the backup.
type place struct {
	job    string // "" for a document without an entry
	at     int64  // its first byte
	length int
}

func (r *restore) run(ctx context.Context) error {
	if _, err := path.Match(r.o.Pattern, ""); err != nil {
		return fmt.Errorf("%w: the pattern %q is none: use * ? and [a-z] as in file names", ledger.ErrRefused, r.o.Pattern)
	}
	if err := r.check(); err != nil {
		return err
	}
	if r.o.Pattern != "" && r.all.Jobs == 0 {
		return fmt.Errorf("%w: no job in it matches %q", ErrBadBackup, r.o.Pattern)
	}
	r.out.Totals, r.out.Generation, r.out.Active = totals(r.all), r.head.Generation, r.head.Generation
	now, _, err := export.TimeOf(ctx, r.client, r.o.Namespace)
	if err != nil {
		return err
	}
	if now.Before(r.head.Taken) {
		return refuse("the clock of this Redis is %s behind the backup's, so tokens could decrease; mend the clock", r.head.Taken.Sub(now).Round(time.Second))
	}
	led, err := ledger.OpenExisting(ctx, r.client, ledger.Config{Namespace: r.o.Namespace})
	if errors.Is(err, ledger.ErrNoNamespace) {
		r.out.Created = true
		if r.o.DryRun {
			return nil
		}
		led, err = ledger.Join(ctx, r.client, ledger.Config{Namespace: r.o.Namespace, Partitions: r.o.Partitions, Generation: r.head.Generation})
	}
	if err != nil {
		return err
	}
	control, err := led.Control(ctx)
	if err != nil {
		return err
	}
	r.out.Active = control.Generation
	if r.o.DryRun {
		return r.look(ctx, led)
	}
	return r.write(ctx, led)
}

// write writes the documents from the last one to the first: a follower is there before its
// upstream's events.
func (r *restore) write(ctx context.Context, led *ledger.Ledger) error {
	var stored []catalog.Change
	into := export.NewImporter(led, r.head.Partitions)
	for _, p := range slices.Backward(r.wanted) {
		text := make([]byte, p.length)
		if _, err := r.backup.Seek(p.at, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.ReadFull(r.backup, text); err != nil {
			return err
		}
		var d export.Document
		if err := json.Unmarshal(text, &d); err != nil {
			return fmt.Errorf("%w: it has changed while it was read: %w", ErrBadBackup, err)
		}
		if err := into.Import(ctx, d); err != nil {
			return err
		}
		if c, ok := storedJob(d); ok {
			stored = append(stored, c)
		}
	}
	exists, err := into.Flush(ctx)
	r.out.Exists = append(r.out.Exists, exists...)
	slices.Sort(r.out.Exists)
	if err != nil {
		return err
	}
	stored = slices.DeleteFunc(stored, func(c catalog.Change) bool {
		_, was := slices.BinarySearch(r.out.Exists, c.Job)
		return was
	})
	for some := range slices.Chunk(stored, catalog.Page) {
		if _, err := catalog.Apply(ctx, led, some); err != nil {
			return err
		}
	}
	return nil
}

// wants reports whether a document is to be restored. Unique keys without a job always are: they
// have no effect elsewhere.
func (r *restore) wants(d export.Document) bool {
	ok, _ := path.Match(r.o.Pattern, d.Job) // checked before
	return ok || r.o.Pattern == "" || d.Job == ""
}

// look notes which jobs are there already.
func (r *restore) look(ctx context.Context, led *ledger.Ledger) error {
	stored, err := query.Jobs(ctx, led)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(stored))
	for _, s := range stored {
		there[s.Entry.Job] = true
	}
	for _, p := range r.wanted {
		if there[p.job] {
			r.out.Exists = append(r.out.Exists, p.job)
		}
	}
	slices.Sort(r.out.Exists)
	return nil
}

// check reads the whole backup: it must be complete and unchanged, and this version must be able to
// restore each selected job.
func (r *restore) check() error {
	if _, err := r.backup.Seek(0, io.SeekStart); err != nil {
		return err
	}
	c := lineReader{r: bufio.NewReader(r.backup), sum: sha256.New(), most: headMax}
	switch err := c.next(&r.head); {
	case r.head.Backup != "" && r.head.Format != backupFormat:
		return fmt.Errorf("%w: its format is %d, and this version knows %d; restore it with the version that wrote it", ErrBadBackup, r.head.Format, backupFormat)
	case err != nil:
		return err
	case r.head.Backup == "":
		return fmt.Errorf("%w: its first line is not that of a backup", ErrBadBackup)
	}
	c.most = lineMax
	names := make(map[string]bool)
	for {
		before := hex.EncodeToString(c.sum.Sum(nil))
		var line struct {
			export.Document
			End *backupEnd `json:"end"`
		}
		if err := c.next(&line); err != nil {
			return err
		}
		if line.End != nil {
			return c.end(*line.End, before)
		}
		d := line.Document
		if d.Job != "" && names[d.Job] {
			return fmt.Errorf("%w: line %d: job %q is there twice", ErrBadBackup, c.n, d.Job)
		}
		names[d.Job] = true
		if !r.wants(d) {
			continue
		}
		if err := d.Check(); err != nil {
			return fmt.Errorf("line %d: %w; restore others with --job", c.n, err)
		}
		p := place{at: c.at, length: c.length}
		if d.Entry != "" {
			p.job = d.Job
		}
		r.wanted = append(r.wanted, p)
		r.all.Add(d)
	}
}
