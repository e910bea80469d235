package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// maxDevNodes bounds dev: beyond it the machine is shown, not the program.
const maxDevNodes = 50

// Dev makes the command dev.
func Dev(a *command.App) *cobra.Command {
	var count int
	c := a.Command("dev [--nodes 3] [--config config.yaml]", "run several nodes and an embedded Redis in one process", command.Wants(),
		func(cmd *cobra.Command, _ []string) error {
			if count < 1 || count > maxDevNodes {
				return command.Usagef("--nodes %d is outside 1 to %d", count, maxDevNodes)
			}
			a.Outlive()
			l, err := a.Load(cmd, true, false)
			if err != nil {
				return err
			}
			return dev(a, l, count)
		})
	c.Long = `Runs nodes dev-1, dev-2, ... with the jobs of the configuration. Without redis.url and
redis.addrs they share a Redis inside this process, which forgets everything when it ends.
The first line on stdout is the HTTP address; then comes a line for each tick.`
	c.Example = `escapement dev
escapement dev --nodes 5 --config config.yaml`
	c.Flags().IntVar(&count, "nodes", 3, "how many nodes")
	return c
}

// dev runs count nodes, each with a client of its own as if it were alone. They follow no move.
func dev(a *command.App, l *config.Loaded, count int) error {
	newClient, where, err := devRedis(l)
	if err != nil {
		return err
	}
	if where != config.Embedded {
		a.Report("these nodes join namespace %s in the Redis at %s and run its jobs; dev --redis \"\" has one of its own", l.Namespace, where)
	}
	log := a.Logger(l.Log)
	hooks := tickLines(a.Stdout)
	guards, end, err := l.Guards(log, newClient)
	if err != nil {
		return err
	}
	defer end()
	n := nodes{several: true}
	for i := range count {
		client, err := newClient()
		if err != nil {
			return err
		}
		cfg := nodeConfig(l, log)
		cfg.Name, cfg.Hooks, cfg.Guards = fmt.Sprintf("dev-%d", i+1), hooks, guards
		if where == config.Embedded { // it forgets everything: no definition is older than this one
			cfg.Revision = cmp.Or(cfg.Revision, "dev")
		}
		if err := n.add(endpoint{client, where}, endpoint{}, l, cfg); err != nil {
			return err
		}
	}
	err = n.run(l.HTTP, log, func(url string) {
		fmt.Fprintln(a.Stdout, url)
		fmt.Fprintf(a.Stderr, "escapement: %s, %s, Redis: %s; Ctrl-C drains and ends\n", print.Many(int64(count), "node"), print.Many(int64(len(l.JobList)), "job"), where)
	})
	return l.Explained(err, "leave that empty for the embedded one")
}

// devRedis returns a function that makes a client, and the name of its Redis for messages: the
// configured Redis, or else a server embedded in this process, which ends with it.
func devRedis(l *config.Loaded) (newClient func() (redis.UniversalClient, error), where string, err error) {
	if l.Redis.URL != "" || l.Redis.Mode != config.ModeStandalone {
		return l.NewClient, l.RedisName(), nil
	}
	if l.Redis.Confirm == config.ConfirmReplicas {
		return nil, "", l.Refused(errors.New("redis.confirm: the embedded Redis has no replicas that could confirm anything; set redis.url, or redis.confirm to none"))
	}
	server, err := redistest.Embed()
	if err != nil {
		return nil, "", err
	}
	return func() (redis.UniversalClient, error) { return server.Client(), nil }, config.Embedded, nil
}

// tickLines prints one line on out for each run that starts, in one write: several
// nodes share it.
func tickLines(out io.Writer) *scheduler.Hooks {
	return &scheduler.Hooks{Started: func(e scheduler.RunEvent) { fmt.Fprintln(out, tickLine(e)) }}
}

// tickLine is "report  tick 2026-01-02T15:04:05.000Z  node dev-2  token 17..  lag 0.8ms", with "
// shard 3 of 16" behind the tick for one of several shards.
func tickLine(e scheduler.RunEvent) string {
	shard := ""
	if e.Shards > 1 {
		shard = fmt.Sprintf("  shard %d of %d", e.Shard, e.Shards)
	}
	return fmt.Sprintf("%-12s  tick %s%s  node %s  token %d  lag %.1fms",
		e.Job, e.Tick.UTC().Format(spec.TimeLayout), shard, e.Node, e.Token, float64(e.Lag)/float64(time.Millisecond))
}
