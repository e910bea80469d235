package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/ops"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
)

// Tool is a command that is connected to a namespace, through Redis or the API.
type Tool struct {
	*App
	Ctx    context.Context // ends at SIGINT and SIGTERM
	Client *ops.Client
	Args   []string
	full   func() bool // whether Redis has no memory left; a call to Redis
}

// Connect connects a command to its namespace.
func (a *App) Connect(f func(Tool) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if address := a.APIAddress(cmd); address != "" {
			return a.overAPI(address, cmd.Flags().Changed("redis"), args, f)
		}
		return a.ConnectRedis(cmd, func(l *config.Loaded, client redis.UniversalClient) error {
			in, err := ops.New(client, l.Namespace)
			if err != nil {
				return l.Refused(err)
			}
			ctx, stop := a.Interruptible()
			defer stop()
			in = in.As(a.Actor())
			err = f(Tool{App: a, Ctx: ctx, Client: in, Args: args, full: func() bool { return redisconn.OutOfMemory(ctx, client) }})
			a.warnMoved(ctx, in, err)
			return err
		})
	}
}

// warnMoved warns on stderr that a move has closed the namespace: the command's output may be
// outdated. A command that was refused for the move, or that did not reach Redis, has printed its
// error already.
func (a *App) warnMoved(ctx context.Context, in *ops.Client, err error) {
	if errors.Is(err, ops.ErrRefused) || errors.Is(err, locking.ErrUnreachable) && !errors.As(err, new(*ops.UnreachableError)) {
		return
	}
	if words, err := in.Closed(ctx); err == nil && words != "" {
		a.Report("%s", words)
	}
}

// ConnectRedis connects a command to the Redis of its configuration.
func (a *App) ConnectRedis(cmd *cobra.Command, f func(l *config.Loaded, client redis.UniversalClient) error) error {
	if cmd.Flags().Changed("api") {
		return Usagef("%s works on Redis itself, which the API does not pass on: use --redis", cmd.CommandPath())
	}
	l, err := a.Load(cmd, false, true)
	if err != nil {
		return err
	}
	client, err := l.NewClient()
	if err != nil {
		if a.APIAddress(cmd) != "" {
			err = fmt.Errorf("%s works on Redis itself, which the API does not pass on: %w", cmd.CommandPath(), err)
		}
		return err
	}
	defer client.Close()
	otherwise := "name another with --redis"
	switch {
	case l.Redis.Mode != config.ModeStandalone:
		otherwise = "name another configuration with --config"
	case cmd.Flags().Changed("redis"):
		otherwise = ""
	}
	return l.Explained(f(l, client), otherwise)
}

// ReportUnreachable prints, after the output about one job or node, that masters of a Cluster do not
// answer. The output is complete; only a job's owner, and how many jobs a node does not claim,
// depend on other jobs too.
func (a *App) ReportUnreachable(err error) error {
	if errors.As(err, new(*ops.UnreachableError)) {
		a.Report("worked out without what cannot be read: %v", err)
		return nil
	}
	return err
}

// ReportUnreadable prints, after a list, which records cannot be read, and returns the list's other errors.
func (a *App) ReportUnreadable(err error) error {
	parts, unreadable, other := ops.Incomplete(err)
	if len(unreadable) > 0 {
		a.Report("the list lacks what this version cannot read: %v", errors.Join(unreadable[:min(len(unreadable), maxUnreadable)]...))
	}
	if rest := len(unreadable) - maxUnreadable; rest > 0 {
		a.Report("and %d more", rest)
	}
	return errors.Join(append(parts, other)...)
}

// maxUnreadable is how many records that cannot be read are named.
const maxUnreadable = 10

// ReportFull prints, after a list without living nodes, that nodes may live and be unable to write.
func (a *App) ReportFull(t Tool) {
	if t.full() {
		a.Report("Redis is full: nodes cannot say that they live, and nothing is claimed; %s", redisconn.FreeMemory)
	}
}

// SuggestJob adds the name that may have been meant to an error about an unknown job.
func (t Tool) SuggestJob(name string, err error) error {
	if !errors.Is(err, ops.ErrUnknownJob) {
		return err
	}
	names, unread := t.Client.JobNames(t.Ctx)
	if unread != nil && names == nil {
		return err // it only was to help
	}
	if slices.Contains(names, name) { // then the error explains why this job is unknown
		return err
	}
	return fmt.Errorf("%w%s", err, spec.DidYouMean(name, names))
}

// ErrLate is returned by Await when the time is over.
var ErrLate = errors.New("not in time")

// Await calls look every period until it reports the end, through outages of Redis too, the first of
// which it reports. It returns ErrInterrupted at SIGINT and SIGTERM, and after most, where that is
// not 0, the last error or ErrLate.
func (t Tool) Await(what string, period, most time.Duration, look func() (over bool, err error)) error {
	began, reported := time.Now(), false
	for {
		over, err := look()
		switch {
		case over:
			return nil
		case t.Ctx.Err() != nil: // checked below
		case err != nil && !errors.Is(err, locking.ErrUnreachable):
			return err
		case most > 0 && time.Since(began) > most:
			return cmp.Or(err, ErrLate)
		case err != nil && !reported:
			reported = true
			t.Report("Redis does not answer; still waiting for %s, until interrupted: %v", what, err)
		}
		select {
		case <-t.Ctx.Done():
			return ErrInterrupted
		case <-time.After(period):
		}
	}
}

// APIAddress is the address of the API for a command; "" for Redis. A flag goes before the
// variable.
func (a *App) APIAddress(cmd *cobra.Command) string {
	if cmd.Flags().Changed("redis") && !cmd.Flags().Changed("api") {
		return ""
	}
	return cmp.Or(a.Flags.api, a.Env[config.APIVariable])
}

// overAPI carries out a command over a node's API.
func (a *App) overAPI(address string, redis bool, args []string, f func(Tool) error) error {
	from, token, _, err := config.Secret(a.Env, config.APITokenVariable)
	if err != nil {
		return Usagef("%s: %w", from, err)
	}
	client, err := opshttp.NewClient(address, opshttp.ClientConfig{Token: token})
	if err != nil {
		return WithCode(ExitUsage, err)
	}
	client = client.As(a.Actor())
	if redis {
		return Usagef("--api and --redis are two ways to one namespace; give one of them")
	}
	ctx, stop := a.Interruptible()
	defer stop()
	if name := a.Flags.namespace; name != "" {
		serves, err := client.Namespace(ctx)
		if err != nil {
			return err
		}
		if serves.Name != name {
			return Usagef("the node at %s serves namespace %q; for %q ask one of its nodes, or use --redis", opshttp.ShowAddress(address), serves.Name, name)
		}
	}
	err = f(Tool{App: a, Ctx: ctx, Client: client, Args: args, full: func() bool { return false }})
	a.warnMoved(ctx, client, err)
	if errors.Is(err, opshttp.ErrAccess) && token == "" {
		return fmt.Errorf("%w; the token is read from %s, or the file that %s_FILE names", err, config.APITokenVariable, config.APITokenVariable)
	}
	return err
}
