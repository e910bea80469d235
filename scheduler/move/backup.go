package move

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
)

// backupFormat is the format of the files that Backup writes.
const backupFormat = 1

// backupHead is the first line of a backup.
type backupHead struct {
	Backup     string    `json:"escapement_backup"` // the namespace
	Format     int       `json:"format"`
	Partitions int       `json:"partitions"`
	Generation string    `json:"generation"`
	Taken      time.Time `json:"taken"` // by Redis' clock, when it was begun
}

// backupEnd is the last line, as "end". A file without it is half a backup.
type backupEnd struct {
	Documents int    `json:"documents"`
	SHA256    string `json:"sha256"` // of all lines before it
}

// Totals count the contents of a backup.
type Totals struct {
	Jobs    int64 `json:"jobs"`
	Running int64 `json:"running"` // runs in flight: restored, they lapse, and are recorded as abandoned
	Pending int64 `json:"pending"` // runs that are not granted yet
	Rows    int64 `json:"rows"`    // of history
	Bytes   int64 `json:"bytes"`
}

func totals(g *export.Digest) Totals {
	return Totals{Jobs: g.Jobs, Running: g.Running, Pending: g.Pending, Rows: g.Rows, Bytes: g.Bytes}
}

// Backup writes every job of a namespace ("" is "escapement") to w: a head, one JSON document a
// line, and an end. Nodes may go on meanwhile: each job is read at one instant, after the job that
// it follows. Records that this version cannot read or could not restore are left out and returned
// as left, in words. Backup returns ledger.ErrNoNamespace, ErrRefused for a namespace that a move
// is filling, locking.ErrUnreachable, and the errors of w.
func Backup(ctx context.Context, client redis.UniversalClient, namespace string, w io.Writer) (t Totals, left []string, err error) {
	namespace = cmp.Or(namespace, ledger.DefaultNamespace)
	fail := func(err error) (Totals, []string, error) {
		return t, left, fmt.Errorf("back up namespace %s at %s: %w", namespace, redisconn.Addr(client), err)
	}
	led, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: namespace})
	if err != nil {
		return fail(ledger.AtReplica(ctx, client, namespace, err))
	}
	control, err := led.Control(ctx)
	if err != nil {
		return fail(err)
	}
	now, _, err := led.Time(ctx)
	if err != nil {
		return fail(err)
	}
	gates, err := led.Gates(ctx)
	if err != nil {
		return fail(err)
	}
	for _, g := range gates {
		if g.State == "filling" || g.State == "burnt" {
			return fail(refuse("a move has not brought all of it here (%s); back up the other side, or wait for `move open`", g.State))
		}
	}
	out, sum := bufio.NewWriter(w), sha256.New()
	lines := json.NewEncoder(io.MultiWriter(out, sum))
	lines.SetEscapeHTML(false)
	head := backupHead{Backup: namespace, Format: backupFormat, Partitions: led.Partitions(), Generation: control.Generation, Taken: now.UTC()}
	if err := lines.Encode(head); err != nil {
		return fail(err)
	}
	all, documents := export.NewDigest(), 0
	unread, err := export.Documents(ctx, led, func(d export.Document) error {
		if err := d.Check(); err != nil {
			left = append(left, err.Error())
			return nil
		}
		all.Add(d)
		documents++
		return lines.Encode(d)
	})
	t, left = totals(all), append(left, describe(unread)...)
	if err == nil {
		err = lines.Encode(map[string]backupEnd{"end": {Documents: documents, SHA256: hex.EncodeToString(sum.Sum(nil))}})
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fail(err)
	}
	return t, left, nil
}
