// Package backfill runs the ticks of a past range beside a job's schedule. A request begins a
// backfill, and nodes feed it: Feed puts runs of the next ticks into pending as earlier ones end.
package backfill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

var (
	backfillScript = ledger.Ship("backfill/backfill", beginArgs{})
	feedScript     = ledger.Ship("backfill/feed", feedArgs{})
	unfeedScript   = ledger.Ship("backfill/unfeed", unfeedArgs{})
	refeedScript   = ledger.Ship("backfill/refeed", refeedArgs{})
)

// Most bounds the backfills that are under way in a partition.
const Most = 100

type beginArgs struct {
	ledger.Clocked

	Job      string `json:"job"`
	Digest   string `json:"digest"` // of the definition whose ticks were counted
	ID       string `json:"id"`
	From     string `json:"from"` // ms
	To       string `json:"to"`   // ms
	Parallel int    `json:"parallel"`
	Total    string `json:"total"`
	Author   string `json:"author"`
	Most     int    `json:"most"` // backfills under way in a partition
}

// Begin begins a backfill of ID, Job, From, To, Parallel, Total and Author; digest is the
// definition by which its ticks were counted. A repeated request is one backfill. It returns
// Elsewhere when the definition is another one now, ErrUnknownJob, and ErrRefused while another
// backfill of the job is under way, or too many are in its partition.
func Begin(ctx context.Context, l *ledger.Ledger, b ledger.Backfill, digest string) (ledger.Status, error) {
	op := "backfill " + b.Job
	args := beginArgs{l.Timed(ctx), b.Job, digest, b.ID, ledger.Spell(b.From), ledger.Spell(b.To), b.Parallel, ledger.Spell(b.Total), ledger.Brief(b.Author, ledger.MaxAuthor), Most}
	word, err := backfillScript.Call(ctx, l.Client, l.Tag(b.Job), b.Job, args).Text()
	if err != nil {
		return "", l.Explain(ctx, op, err)
	}
	if other, ok := strings.CutPrefix(word, "under way|"); ok {
		return "", fmt.Errorf("%w: %s: backfill %s of the job is under way; wait for its end (`jobs backfills %s`), or cancel it (`jobs backfill-cancel %s`)",
			ledger.ErrRefused, op, other, b.Job, b.Job)
	}
	switch word {
	case "begun", "stale":
		return ledger.Status(word), nil
	case "many":
		return "", fmt.Errorf("%w: %s: %d backfills are under way beside this job; wait until one of them has ended (`jobs backfills`)", ledger.ErrRefused, op, Most)
	}
	return "", l.Refusal(op, b.Job, word)
}

type feedArgs struct {
	ledger.Clocked

	Server string     `json:"server"` // id of the caller's epoch, "" for any
	Job    string     `json:"job"`
	Digest string     `json:"digest"`  // of the caller's definition
	Seen   string     `json:"seen"`    // the backfill's record
	Going  [][]string `json:"going"`   // for each run of Seen that had not ended: its tick, its id, and those under which it may go on
	Ticks  [][]string `json:"ticks"`   // the same of the next ticks
	Rest   string     `json:"rest"`    // the tick after those, ms; "" for none
	Most   int        `json:"most"`    // pending runs in a partition
	AtOnce int        `json:"at_once"` // how many of its runs may wait or go
}

// The answers of Feed. After Elsewhere, another node has fed the backfill; nothing was done then,
// nor with the last three.
const (
	Fed           ledger.Status = "fed"        // nothing was to be put into pending now
	Put           ledger.Status = "put"        // runs of its next ticks are pending
	Ended         ledger.Status = "ended"      // this call has ended it
	Superseded    ledger.Status = "superseded" // the stored definition is another one
	NoJob         ledger.Status = "unknown"    // there is no such job
	UnknownFormat ledger.Status = "foreign"    // a record of the job, or its history, cannot be read
)

// AtOnce is how many runs of a backfill may wait or go, by a definition with so many shards:
// Parallel, and no more than half of the history has room for. The row of a run that has ended must
// be there when the backfill is next looked at.
func AtOnce(l *ledger.Ledger, b ledger.Backfill, shards int) int {
	rows := 1
	if shards > 1 {
		rows = shards + 1
	}
	return max(1, min(b.Parallel, l.Config.Keep/2/rows))
}

// Feed advances a backfill, as far as Parallel allows: next are its ticks from b.Next on, by the
// definition with this digest and so many shards, up to one more than Parallel. It returns the
// backfill after the step. Half of the places of pending runs stay free for other runs. It returns
// ErrServer in another epoch than At's.
func Feed(ctx context.Context, l *ledger.Ledger, b ledger.Backfill, digest string, shards int, next []int64) (ledger.Backfill, ledger.Status, error) {
	args := feedArgs{
		Clocked: l.Timed(ctx), Server: l.Known, Job: b.Job, Digest: digest, Seen: b.Record, Going: make([][]string, 0, len(b.Going)), Ticks: make([][]string, 0, len(next)),
		Most: ledger.PendingMax / 2, AtOnce: AtOnce(l, b, shards),
	}
	ids := func(tick int64, run string) []string {
		return append([]string{ledger.Spell(tick), run}, ledger.LaterAttemptIDs(run)...)
	}
	for _, r := range b.Going {
		args.Going = append(args.Going, ids(r.Tick, r.Run))
	}
	for i, tick := range next {
		if i == b.Parallel {
			args.Rest = ledger.Spell(tick)
			break
		}
		args.Ticks = append(args.Ticks, ids(tick, b.RunID(tick)))
	}
	op := "feed the backfill of " + b.Job
	reply, err := feedScript.Call(ctx, l.Client, l.Tag(b.Job), b.Job, args).StringSlice()
	if err != nil {
		return b, "", l.Explain(ctx, op, err)
	}
	if len(reply) == 2 {
		b, err = ledger.ParseBackfill(reply[1])
	}
	if shut, ok := strings.CutPrefix(reply[0], "closed|"); ok {
		return b, "", fmt.Errorf("%s: %w", op, ledger.ClosedBy(shut))
	}
	if reply[0] == "server" {
		return b, "", fmt.Errorf("%s: %w", op, ledger.ErrServer)
	}
	return b, ledger.Status(reply[0]), err
}

type unfeedArgs struct {
	Job    string `json:"job"`
	Author string `json:"author"`
	Reason string `json:"reason"`
}

// Cancel cancels the backfill of a job: no further tick of it gets a run, and its runs end
// as Cancel ends them. It returns the backfill as it is then. Repeated, it ends runs that another
// call has not come to. It returns ErrRefused when none is under way.
func Cancel(ctx context.Context, l *ledger.Ledger, job, author, reason string) (ledger.Backfill, error) {
	op := "cancel the backfill of " + job
	args := unfeedArgs{job, cmp.Or(ledger.Brief(author, ledger.MaxAuthor), "somebody"), ledger.Brief(reason, ledger.MaxReason)}
	word, err := unfeedScript.Call(ctx, l.Client, l.Tag(job), job, args).Text()
	switch {
	case err != nil:
		return ledger.Backfill{}, l.Explain(ctx, op, err)
	case word == "none":
		return ledger.Backfill{}, fmt.Errorf("%w: %s: none is under way; `jobs backfills %s` shows the last one", ledger.ErrRefused, op, job)
	case !strings.HasPrefix(word, "1|"):
		return ledger.Backfill{}, l.Refusal(op, job, word)
	}
	b, err := ledger.ParseBackfill(word)
	if err != nil {
		return b, fmt.Errorf("%s: %w", op, err)
	}
	return b, CancelRuns(ctx, l, b)
}

// CancelRuns cancels the runs of a cancelled backfill that have not ended.
func CancelRuns(ctx context.Context, l *ledger.Ledger, b ledger.Backfill) error {
	var ids []string
	for _, r := range b.Going {
		ids = append(append(ids, r.Run), ledger.LaterAttemptIDs(r.Run)...)
	}
	going, err := query.FindInFlight(ctx, l, []string{b.Job}, ids...)
	if err != nil {
		return err
	}
	for _, r := range going {
		_, err := operate.Cancel(ctx, l, b.Job, r.ID, b.By, b.Reason)
		if err != nil && !errors.Is(err, ledger.ErrUnknownRun) && !errors.Is(err, ledger.ErrRefused) { // else it has ended meanwhile
			return err
		}
	}
	return nil
}

// List reads the backfills that are under way and the last ended one of each job, of one job
// or, with "", of all. It also counts the unreadable ones.
func List(ctx context.Context, l *ledger.Ledger, job string) (all []ledger.Backfill, unknownFormat int, err error) {
	parts := l.All()
	if job != "" {
		parts = []int{l.Partition(job)}
	}
	var read []*redis.MapStringStringCmd
	_, err = l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, part := range parts {
			read = append(read, p.HGetAll(ctx, l.Keys[part].Backfills), p.HGetAll(ctx, l.Keys[part].Backfilled))
		}
		return nil
	})
	if err != nil {
		return nil, 0, l.Explain(ctx, "read backfills", err)
	}
	for _, cmd := range read {
		for _, name := range slices.Sorted(maps.Keys(cmd.Val())) {
			if job != "" && name != job {
				continue
			}
			b, err := ledger.ParseBackfill(cmd.Val()[name])
			if err != nil {
				unknownFormat++
				continue
			}
			all = append(all, b)
		}
	}
	return all, unknownFormat, nil
}

// refeedArgs are the arguments of refeed.lua.
type refeedArgs struct {
	Server string   `json:"server"` // id of the caller's epoch, "" for any
	Seen   []string `json:"seen"`   // records
}

// Refeed stores backfills of a partition again, as the node saw them last, in the epoch that At
// names. It returns how many Redis had lost, or had not got as far. It returns ErrServer in another
// epoch.
func Refeed(ctx context.Context, l *ledger.Ledger, part int, seen []ledger.Backfill) (stored int, err error) {
	if len(seen) == 0 {
		return 0, nil
	}
	args := refeedArgs{Server: l.Known}
	for _, b := range seen {
		args.Seen = append(args.Seen, b.Record)
	}
	word, err := refeedScript.Call(ctx, l.Client, l.Keys[part].Tag, "", args).Text()
	if err == nil && word == "server" {
		err = ledger.ErrServer
	}
	if err != nil {
		return 0, redisconn.Classify("store backfills again", err)
	}
	return strconv.Atoi(word)
}

// Lost are those of some running backfills of a partition whose record is gone although
// they have not ended and their jobs exist: only a person deletes such a record.
func Lost(ctx context.Context, l *ledger.Ledger, part int, some []ledger.Backfill) (lost []ledger.Backfill, err error) {
	if len(some) == 0 {
		return nil, nil
	}
	jobs := make([]string, len(some))
	for i, b := range some {
		jobs[i] = b.Job
	}
	k := l.Keys[part]
	var going, ended, entries *redis.SliceCmd
	_, err = l.Client.Pipelined(ctx, func(p redis.Pipeliner) error { // in this order: a script moves a record from the first key to the second
		going, ended, entries = p.HMGet(ctx, k.Backfills, jobs...), p.HMGet(ctx, k.Backfilled, jobs...), p.HMGet(ctx, k.Jobs, jobs...)
		return nil
	})
	if err != nil {
		return nil, l.Explain(ctx, "look for lost backfills", err)
	}
	for i, b := range some {
		last, _ := ended.Val()[i].(string)
		over, err := ledger.ParseBackfill(last)
		isOver := last != "" && (err != nil || over.ID == b.ID)
		if going.Val()[i] == nil && entries.Val()[i] != nil && !isOver {
			lost = append(lost, b)
		}
	}
	return lost, nil
}
