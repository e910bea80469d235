package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/ops/http"
)

// tool is what a command that looks into Redis works with.
type tool struct {
	ctx  context.Context // ends at SIGINT and SIGTERM
	in   operator
	args []string
	full func() bool // asks whether Redis has no memory left
}

// operator is what reads and operates a namespace: a client of Redis, or one of a node's HTTP API.
type operator interface {
	Now(ctx context.Context) (time.Time, error)
	Closed(ctx context.Context) (string, error)
	ListJobs(ctx context.Context, f ops.JobFilter) (ops.JobList, error)
	JobNames(ctx context.Context) ([]string, error)
	GetJob(ctx context.Context, name string) (ops.JobView, error)
	Graph(ctx context.Context) ([]ops.GraphJob, error)
	Trigger(ctx context.Context, name string, o ops.TriggerOptions) (string, error)
	RunByKey(ctx context.Context, name, unique string) (ops.RunView, error)
	Pause(ctx context.Context, name string, o ops.PauseOptions) error
	Resume(ctx context.Context, name string) error
	Remove(ctx context.Context, name string) error
	PutJobs(ctx context.Context, list []jobs.Job, o ops.PutOptions) ([]ops.StoredJob, error)
	StoredJobs(ctx context.Context, names ...string) ([]ops.StoredJob, error)
	DeleteJob(ctx context.Context, name string, was time.Time) error
	DeleteJobs(ctx context.Context, list []ops.StoredJob) (deleted []string, err error)
	Rewind(ctx context.Context, name string, to time.Time) (time.Time, error)
	Backfill(ctx context.Context, name string, o ops.BackfillOptions) (ops.BackfillPlan, error)
	ListBackfills(ctx context.Context, name string) ([]ops.BackfillView, error)
	CancelBackfill(ctx context.Context, name string, o ops.CancelOptions) (ops.BackfillView, error)
	ListRuns(ctx context.Context, f ops.RunFilter) (ops.RunList, error)
	GetRun(ctx context.Context, id string) (ops.RunView, error)
	WaitRun(ctx context.Context, id string) (ops.RunView, error)
	Cancel(ctx context.Context, id string, o ops.CancelOptions) (ops.Cancellation, error)
	Rerun(ctx context.Context, id string) (string, error)
	ListNodes(ctx context.Context) ([]ops.NodeView, error)
	Drains(ctx context.Context) (map[string]ops.DrainView, error)
	DrainNode(ctx context.Context, name string, o ops.DrainOptions) error
	ResumeNode(ctx context.Context, name string) error
	NodeIdle(ctx context.Context, name string) (bool, error)
	ListLocks(ctx context.Context, f ops.LockFilter) (ops.LockList, error)
	GetLock(ctx context.Context, name string) (ops.LockView, error)
	ReleaseLock(ctx context.Context, name string, token int64, o ops.ReleaseOptions) (ops.Release, error)
	ListGenerations(ctx context.Context) ([]ops.GenerationView, error)
	Promote(ctx context.Context, generation string, o ops.PromoteOptions) (ops.Promotion, error)
	Verify(ctx context.Context, f ops.VerifyFilter) (ops.Verification, error)
	Problems(ctx context.Context) ([]ops.Problem, error)
	Audit(ctx context.Context, f ops.ActionFilter) (ops.ActionList, error)
}

// inspect connects a command to Redis.
func (a *app) inspect(f func(tool) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if address := a.apiAddress(cmd); address != "" {
			return a.overAPI(address, cmd.Flags().Changed("redis"), args, f)
		}
		return a.reach(cmd, func(l *loaded, client redis.UniversalClient) error {
			in, err := ops.New(client, l.Namespace)
			if err != nil {
				return l.refused(err)
			}
			ctx, stop := a.interruptible()
			defer stop()
			in = in.As(a.actor())
			err = f(tool{ctx, in, args, func() bool { return redisconn.OutOfMemory(ctx, client) }})
			a.elsewhere(ctx, in, err)
			return err
		})
	}
}

// elsewhere says on stderr that a move has closed the namespace, so that nobody takes what a command shows for the present.
// A command that was refused for it, or that did not reach Redis, has said what there is to say.
func (a *app) elsewhere(ctx context.Context, in operator, err error) {
	if errors.Is(err, ops.ErrRefused) || errors.Is(err, locking.ErrUnreachable) && !errors.As(err, new(*ops.UnreachableError)) {
		return
	}
	if words, err := in.Closed(ctx); err == nil && words != "" {
		a.say("%s", words)
	}
}

// reach connects a command to the Redis of its configuration.
func (a *app) reach(cmd *cobra.Command, f func(l *loaded, client redis.UniversalClient) error) error {
	if cmd.Flags().Changed("api") {
		return usagef("%s works on Redis itself, which the API does not pass on: use --redis", cmd.CommandPath())
	}
	l, err := a.loadTool(cmd)
	if err != nil {
		return err
	}
	client, err := l.newClient()
	if err != nil {
		if a.apiAddress(cmd) != "" {
			err = fmt.Errorf("%s works on Redis itself, which the API does not pass on: %w", cmd.CommandPath(), err)
		}
		return err
	}
	defer client.Close()
	otherwise := "name another with --redis"
	switch {
	case l.Redis.Mode != modeStandalone:
		otherwise = "name another configuration with --config"
	case cmd.Flags().Changed("redis"):
		otherwise = ""
	}
	return l.explained(f(l, client), otherwise)
}

// sayUnheard says beside what was asked for of one job or node that masters of a Cluster do not answer. It is all there; only who goes
// first for a job, and how many jobs a node does not claim, depends on other jobs too.
func (a *app) sayUnheard(err error) error {
	if errors.As(err, new(*ops.UnreachableError)) {
		a.say("worked out without what cannot be read: %v", err)
		return nil
	}
	return err
}

// sayLacks says beside a list which of its records cannot be read, and returns what else is wrong with it.
func (a *app) sayLacks(err error) error {
	parts, unreadable, other := opshttp.Lacks(err)
	if len(unreadable) > 0 {
		a.say("the list lacks what this version cannot read: %v", errors.Join(unreadable[:min(len(unreadable), lacksSaid)]...))
	}
	if rest := len(unreadable) - lacksSaid; rest > 0 {
		a.say("and %d more", rest)
	}
	return errors.Join(append(parts, other)...)
}

// lacksSaid is how many records that cannot be read are named.
const lacksSaid = 10

// sayFull says beside a list without living nodes that they may live, where they cannot write.
func (a *app) sayFull(t tool) {
	if t.full() {
		a.say("Redis is full: nodes cannot say that they live, and nothing is claimed; %s", redisconn.FreeMemory)
	}
}

// pairs writes names and values one below the other; names and values alternate. The further lines of a value stand below its first.
func pairs(w io.Writer, cells ...string) error {
	tabs := newTabs(w)
	for i := 0; i+1 < len(cells); i += 2 {
		first, more, _ := strings.Cut(strings.TrimRight(cells[i+1], "\n"), "\n")
		fmt.Fprintf(tabs, "%s\t%s\n", cell(cells[i]), cell(first))
		for line := range strings.SplitSeq(more, "\n") {
			if more != "" {
				fmt.Fprintf(tabs, "\t%s\n", harmless(line))
			}
		}
	}
	return tabs.Flush()
}

// given leaves out the names whose value is empty: "no node -" reads as if there were none.
func given(cells ...string) (some []string) {
	for i := 0; i+1 < len(cells); i += 2 {
		if cells[i+1] != "" {
			some = append(some, cells[i], cells[i+1])
		}
	}
	return some
}

// stamp is an instant, or nothing.
func stamp(at *ops.Stamp) string {
	if at == nil {
		return ""
	}
	return at.String()
}
