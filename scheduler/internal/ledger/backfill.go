package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
)

const (
	// BackfillParallel is the most runs of a backfill that may wait or go at a time.
	BackfillParallel = 100
	// backfillsMax bounds the backfills that are under way in a partition.
	backfillsMax = 100
)

// The states of a backfill.
const (
	BackfillGoing     = "going"
	BackfillCancelled = "cancelled" // also while runs of it have not ended
	BackfillDone      = "done"
)

// Backfill is the ticks of a range that a job runs beside its schedule. A job has one under way at
// most. Its runs are ruled by Parallel: they do not hold the job, and nothing that holds the job
// holds them. Instants are ms.
type Backfill struct {
	ID, Job, State string
	From, To       int64 // the range; both ends belong to it
	Next           int64 // no tick from here on has a run yet; 0 when all have
	Parallel       int
	Total          int64                  // ticks in the range when it began
	Counts         map[jobs.Outcome]int64 // ticks that have ended
	Going          []BackfillRun          // ticks whose runs have not ended
	Began, Looked  int64                  // the time of the request, and of its last step by a node
	Ended          int64                  // 0 before
	Author         string
	By, Reason     string // who cancelled it, and why
	record         string
}

// BackfillRun is a tick of a backfill, ms, and the id of the run that it has now.
type BackfillRun struct {
	Tick int64
	Run  string
}

// run is the id of the first run of a tick.
func (b Backfill) run(tick int64) string { return b.ID + "-" + ms(tick) }

// Tally is how many of its ticks have ended, and how: "succeeded 998, failed 2".
func (b Backfill) Tally() string {
	var words []string
	for o := jobs.OutcomeSucceeded; o <= jobs.OutcomeSuperseded; o++ {
		if n := b.Counts[o]; n > 0 {
			words = append(words, fmt.Sprintf("%s %d", o, n))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "no tick has run")
}

func backfillOf(record string) (Backfill, error) {
	b := Backfill{record: record}
	err := b.readBackfill(record)
	b.Parallel = min(max(b.Parallel, 1), BackfillParallel)
	switch {
	case b.State != backfillRestored:
	case b.Ended != 0: // by a node that did not know the state
		b.State = BackfillDone
	default:
		b.State = BackfillGoing
	}
	return b, err
}

// backfills adds the backfills that are under way, ordered by job.
func (f *ScanResult) backfills(records []string) {
	for _, record := range records {
		b, err := backfillOf(record)
		if err != nil {
			f.UnknownFormat++
			continue
		}
		f.Backfills = append(f.Backfills, b)
	}
	slices.SortFunc(f.Backfills, ByJob)
}

// ByJob orders backfills by their jobs.
func ByJob(a, b Backfill) int { return cmp.Compare(a.Job, b.Job) }

type backfillArgs struct {
	clocked

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

// Backfill begins a backfill of ID, Job, From, To, Parallel, Total and Author; digest is the
// definition by which its ticks were counted. A repeated request is one backfill. It returns
// Elsewhere when the definition is another one now, ErrUnknownJob, and ErrRefused while another
// backfill of the job is under way, or too many are in its partition.
func (l *Ledger) Backfill(ctx context.Context, b Backfill, digest string) (Status, error) {
	op := "backfill " + b.Job
	args := backfillArgs{l.timed(ctx), b.Job, digest, b.ID, ms(b.From), ms(b.To), b.Parallel, ms(b.Total), brief(b.Author, authorMax), backfillsMax}
	word, err := backfillScript.call(ctx, l.client, l.tag(b.Job), b.Job, args).Text()
	if err != nil {
		return "", l.explain(ctx, op, err)
	}
	if other, ok := strings.CutPrefix(word, "under way|"); ok {
		return "", fmt.Errorf("%w: %s: backfill %s of the job is under way; wait for its end (`jobs backfills %s`), or cancel it (`jobs backfill-cancel %s`)",
			ErrRefused, op, other, b.Job, b.Job)
	}
	switch word {
	case "begun", "stale":
		return Status(word), nil
	case "many":
		return "", fmt.Errorf("%w: %s: %d backfills are under way beside this job; wait until one of them has ended (`jobs backfills`)", ErrRefused, op, backfillsMax)
	}
	return "", l.refusal(op, b.Job, word)
}

type feedArgs struct {
	clocked

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
	BackfillFed           Status = "fed"        // nothing was to be put into pending now
	BackfillPut           Status = "put"        // runs of its next ticks are pending
	BackfillEnded         Status = "ended"      // this call has ended it
	BackfillSuperseded    Status = "superseded" // the stored definition is another one
	BackfillNoJob         Status = "unknown"    // there is no such job
	BackfillUnknownFormat Status = "foreign"    // a record of the job, or its history, cannot be read
)

// AtOnce is how many runs of a backfill may wait or go, by a definition with so many shards:
// Parallel, and no more than half of the history has room for. The row of a run that has ended must
// be there when the backfill is next looked at.
func (l *Ledger) AtOnce(b Backfill, shards int) int {
	rows := 1
	if shards > 1 {
		rows = shards + 1
	}
	return max(1, min(b.Parallel, l.cfg.Keep/2/rows))
}

// Feed advances a backfill, as far as Parallel allows: next are its ticks from b.Next on, by the
// definition with this digest and so many shards, up to one more than Parallel. It returns the
// backfill after the step. Half of the places of pending runs stay free for other runs. It returns
// ErrServer in another epoch than At's.
func (l *Ledger) Feed(ctx context.Context, b Backfill, digest string, shards int, next []int64) (Backfill, Status, error) {
	args := feedArgs{
		clocked: l.timed(ctx), Server: l.known, Job: b.Job, Digest: digest, Seen: b.record, Going: make([][]string, 0, len(b.Going)), Ticks: make([][]string, 0, len(next)),
		Most: pendingMax / 2, AtOnce: l.AtOnce(b, shards),
	}
	ids := func(tick int64, run string) []string { return append([]string{ms(tick), run}, laterAttemptIDs(run)...) }
	for _, r := range b.Going {
		args.Going = append(args.Going, ids(r.Tick, r.Run))
	}
	for i, tick := range next {
		if i == b.Parallel {
			args.Rest = ms(tick)
			break
		}
		args.Ticks = append(args.Ticks, ids(tick, b.run(tick)))
	}
	op := "feed the backfill of " + b.Job
	reply, err := feedScript.call(ctx, l.client, l.tag(b.Job), b.Job, args).StringSlice()
	if err != nil {
		return b, "", l.explain(ctx, op, err)
	}
	if len(reply) == 2 {
		b, err = backfillOf(reply[1])
	}
	if shut, ok := strings.CutPrefix(reply[0], "closed|"); ok {
		return b, "", fmt.Errorf("%s: %w", op, ClosedBy(shut))
	}
	if reply[0] == "server" {
		return b, "", fmt.Errorf("%s: %w", op, ErrServer)
	}
	return b, Status(reply[0]), err
}

type unfeedArgs struct {
	Job    string `json:"job"`
	Author string `json:"author"`
	Reason string `json:"reason"`
}

// CancelBackfill cancels the backfill of a job: no further tick of it gets a run, and its runs end
// as Cancel ends them. It returns the backfill as it is then. Repeated, it ends runs that another
// call has not come to. It returns ErrRefused when none is under way.
func (l *Ledger) CancelBackfill(ctx context.Context, job, author, reason string) (Backfill, error) {
	op := "cancel the backfill of " + job
	args := unfeedArgs{job, cmp.Or(brief(author, authorMax), "somebody"), brief(reason, reasonMax)}
	word, err := unfeedScript.call(ctx, l.client, l.tag(job), job, args).Text()
	switch {
	case err != nil:
		return Backfill{}, l.explain(ctx, op, err)
	case word == "none":
		return Backfill{}, fmt.Errorf("%w: %s: none is under way; `jobs backfills %s` shows the last one", ErrRefused, op, job)
	case !strings.HasPrefix(word, "1|"):
		return Backfill{}, l.refusal(op, job, word)
	}
	b, err := backfillOf(word)
	if err != nil {
		return b, fmt.Errorf("%s: %w", op, err)
	}
	return b, l.CancelRuns(ctx, b)
}

// CancelRuns cancels the runs of a cancelled backfill that have not ended.
func (l *Ledger) CancelRuns(ctx context.Context, b Backfill) error {
	var ids []string
	for _, r := range b.Going {
		ids = append(append(ids, r.Run), laterAttemptIDs(r.Run)...)
	}
	going, err := l.FindInFlight(ctx, []string{b.Job}, ids...)
	if err != nil {
		return err
	}
	for _, r := range going {
		_, err := l.Cancel(ctx, b.Job, r.ID, b.By, b.Reason)
		if err != nil && !errors.Is(err, ErrUnknownRun) && !errors.Is(err, ErrRefused) { // else it has ended meanwhile
			return err
		}
	}
	return nil
}

// Backfills reads the backfills that are under way and the last ended one of each job, of one job
// or, with "", of all. It also counts the unreadable ones.
func (l *Ledger) Backfills(ctx context.Context, job string) (all []Backfill, unknownFormat int, err error) {
	parts := l.All()
	if job != "" {
		parts = []int{l.Partition(job)}
	}
	var read []*redis.MapStringStringCmd
	_, err = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, part := range parts {
			read = append(read, p.HGetAll(ctx, l.keys[part].backfills), p.HGetAll(ctx, l.keys[part].backfilled))
		}
		return nil
	})
	if err != nil {
		return nil, 0, l.explain(ctx, "read backfills", err)
	}
	for _, cmd := range read {
		for _, name := range slices.Sorted(maps.Keys(cmd.Val())) {
			if job != "" && name != job {
				continue
			}
			b, err := backfillOf(cmd.Val()[name])
			if err != nil {
				unknownFormat++
				continue
			}
			all = append(all, b)
		}
	}
	return all, unknownFormat, nil
}
