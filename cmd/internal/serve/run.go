// Package serve has the commands that run nodes, and report how a node is.
package serve

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler"
)

// Run makes the command run.
func Run(a *command.App) *cobra.Command {
	var waitForRedis bool
	c := a.Command("run --config FILE [--wait-for-redis]", "run one node", command.Wants(), func(cmd *cobra.Command, _ []string) error {
		a.Outlive()
		l, err := a.Load(cmd, true, false)
		if err != nil {
			return err
		}
		log := a.Logger(l.Log)
		cfg := nodeConfig(l, log)
		cfg.WaitForRedis = waitForRedis
		return runNode(l, cfg, supervisorOf(a.Env))
	})
	c.Long = `Runs one node until SIGINT or SIGTERM, then drains and exits 0. A second signal
exits at once, with code 1. Health: /healthz, /readyz and /version on http.listen.
The jobs are read again at SIGHUP, and when the file or a file of jobs.d beside it changes.
Under systemd (Type=notify) the unit is active when the node has registered its jobs.

With redis.next the node follows the namespace when it moves to that Redis: it goes on
there, in the same process, as soon as move open has opened it.`
	c.Example = `escapement run --config /etc/escapement/config.yaml
ESCAPEMENT_REDIS_URL=redis://redis:6379/0 ESCAPEMENT_NODE_NAME=a1 escapement run --wait-for-redis`
	c.Flags().BoolVar(&waitForRedis, "wait-for-redis", false, "wait when Redis cannot be reached at the start, rather than exit 6")
	return c
}

// runNode runs the one node of a process, and reports its state to the supervisor.
func runNode(l *config.Loaded, cfg scheduler.Config, manager *supervisor) error {
	client, err := l.NewClient()
	if err != nil {
		return err
	}
	next, err := nextEndpoint(l)
	if err != nil {
		return err
	}
	guards, end, err := l.Guards(cfg.Logger, l.NewClient)
	if err != nil {
		return err
	}
	defer end()
	cfg.Guards = guards
	n := nodes{supervisor: manager}
	if err := n.add(endpoint{client, l.RedisName()}, next, l, cfg); err != nil {
		return err
	}
	log := cfg.Logger
	if len(l.JobList) == 0 {
		log.Warn("the configuration has no jobs; this node will have nothing to do", "file", l.From.File)
	}
	err = n.run(l.HTTP, log, func(url string) {
		log.Info("node starting", "node", n.slots[0].Name(), "redis", l.RedisName(), "http", url)
	})
	return l.Explained(err, "wait for it with --wait-for-redis")
}

// nextEndpoint is redis.next.
func nextEndpoint(l *config.Loaded) (endpoint, error) {
	if l.Redis.Next == "" {
		return endpoint{}, nil
	}
	a, err := redisconn.Parse(l.Redis.Next)
	if err != nil {
		return endpoint{}, err // load has read it once already
	}
	return endpoint{a.Client(), a.String()}, nil
}

// nodeConfig is the library's form of the node's settings.
func nodeConfig(l *config.Loaded, log *slog.Logger) scheduler.Config {
	b := thisBuild()
	ahead, _ := l.Node.Ahead() // checked when it was loaded
	return scheduler.Config{
		Namespace: l.Namespace, Partitions: l.Redis.Partitions,
		Name: l.Node.Name, Version: b.Version, Revision: l.Node.Revision, Generation: l.Node.Generation,
		Labels: l.Node.Labels, Weight: l.Node.Weight, MaxRunning: l.Node.MaxRunning,
		Grace: l.Node.Grace, ClaimAhead: ahead, SweepEvery: l.Node.SweepEvery,
		MaxSkew: l.Node.MaxSkew, MaxStep: l.Node.MaxStep, FailoverHold: l.Node.FailoverHold, DrainTimeout: l.Node.DrainTimeout,
		HistoryKeep: l.History.Keep, HistoryKeepFor: l.History.KeepFor, Confirm: l.Confirm(),
		Logger: log,
	}
}

// registry registers jobs of the configuration.
func registry(l *config.Loaded, list []jobs.Job) (*jobs.Registry, error) {
	reg := jobs.NewRegistry()
	for name, f := range l.HandlerFuncs {
		if err := reg.Handle(name, f); err != nil {
			return nil, l.Refused(err)
		}
	}
	for _, j := range list {
		if err := reg.Add(j); err != nil {
			return nil, l.Refused(err)
		}
	}
	return reg, nil
}
