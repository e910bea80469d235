package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler"
)

func (a *app) runCommand() *cobra.Command {
	var waitForRedis bool
	c := a.command("run --config FILE [--wait-for-redis]", "run one node", wants(), func(cmd *cobra.Command, _ []string) error {
		a.outlive()
		l, err := a.load(cmd, true)
		if err != nil {
			return err
		}
		log := newLogger(a.stderr, l.Log)
		cfg := l.nodeConfig(log)
		cfg.WaitForRedis = waitForRedis
		return runNode(l, cfg, supervisorOf(a.env))
	})
	c.Long = `Runs one node until SIGINT or SIGTERM, then drains and exits 0. A second signal
exits at once, with code 1. Health: /healthz, /readyz and /version on http.listen.
The jobs are read again at SIGHUP, and when the file or a file of jobs.d beside it changes.
Under systemd (Type=notify) the unit is active when the node has registered its jobs.

With redis.next the node follows the namespace when it moves to that Redis: it goes on
there, in the same process, as soon as move open has opened it.`
	c.Flags().BoolVar(&waitForRedis, "wait-for-redis", false, "wait when Redis cannot be reached at the start, rather than exit 6")
	return c
}

// runNode runs the one node of a process, and reports its state to the supervisor.
func runNode(l *loaded, cfg scheduler.Config, told *supervisor) error {
	client, err := l.newClient()
	if err != nil {
		return err
	}
	next, err := l.nextEndpoint()
	if err != nil {
		return err
	}
	guards, end, err := l.guards(cfg.Logger, l.newClient)
	if err != nil {
		return err
	}
	defer end()
	cfg.Guards = guards
	f := fleet{supervisor: told}
	if err := f.add(endpoint{client, l.redisName()}, next, l, cfg); err != nil {
		return err
	}
	log := cfg.Logger
	if len(l.jobs) == 0 {
		log.Warn("the configuration has no jobs; this node will have nothing to do", "file", l.from.file)
	}
	err = f.run(l.HTTP, log, func(url string) {
		log.Info("node starting", "node", f.slots[0].Name(), "redis", l.redisName(), "http", url)
	})
	return l.explained(err, "wait for it with --wait-for-redis")
}

// nextEndpoint is redis.next.
func (l *loaded) nextEndpoint() (endpoint, error) {
	if l.Redis.Next == "" {
		return endpoint{}, nil
	}
	a, err := redisconn.Parse(l.Redis.Next)
	if err != nil {
		return endpoint{}, err // load has read it once already
	}
	return endpoint{a.Client(), a.String()}, nil
}

// confirmReplicas is the value of redis.confirm that is not none.
const confirmReplicas = "replicas"

// confirm returns how many replicas must have a grant; ConfirmMajority counts them at run time.
func (l *loaded) confirm() int {
	switch {
	case l.Redis.Confirm != confirmReplicas:
		return 0
	case l.Redis.Replicas > 0:
		return (l.Redis.Replicas + 1) / 2
	}
	return scheduler.ConfirmMajority
}

// nodeConfig is the library's form of the node's settings.
func (l *loaded) nodeConfig(log *slog.Logger) scheduler.Config {
	b := thisBuild()
	ahead, _ := l.Node.ahead() // checked when it was loaded
	return scheduler.Config{
		Namespace: l.Namespace, Partitions: l.Redis.Partitions,
		Name: l.Node.Name, Version: b.Version, Revision: l.Node.Revision, Generation: l.Node.Generation,
		Labels: l.Node.Labels, Weight: l.Node.Weight, MaxRunning: l.Node.MaxRunning,
		Grace: l.Node.Grace, ClaimAhead: ahead, SweepEvery: l.Node.SweepEvery,
		MaxSkew: l.Node.MaxSkew, MaxStep: l.Node.MaxStep, FailoverHold: l.Node.FailoverHold, DrainTimeout: l.Node.DrainTimeout,
		HistoryKeep: l.History.Keep, HistoryKeepFor: l.History.KeepFor, Confirm: l.confirm(),
		Logger: log,
	}
}

// registry registers jobs of the configuration.
func (l *loaded) registry(list []jobs.Job) (*jobs.Registry, error) {
	reg := jobs.NewRegistry()
	for name, f := range l.handlers {
		if err := reg.Handle(name, f); err != nil {
			return nil, l.refused(err)
		}
	}
	for _, j := range list {
		if err := reg.Add(j); err != nil {
			return nil, l.refused(err)
		}
	}
	return reg, nil
}

// refused is the library's refusal of a configuration that load let pass: still a
// fault of the configuration, without a line.
func (l *loaded) refused(err error) error {
	var faults faultList
	faults.add(place{file: l.from.file}, "", "%v", err)
	return faults.err()
}
