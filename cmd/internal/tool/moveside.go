package tool

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/move"
	"github.com/escapement/escapement/scheduler/ops"
)

// moveStep connects a step to both Redis.
func moveStep(a *command.App, cmd *cobra.Command, f moveFlags, run func(moveTool) error) error {
	if f.partitions < 0 || f.partitions > 1024 {
		return command.Usagef("--partitions %d is outside 0 to 1024; 0 is as many as before", f.partitions)
	}
	l, err := a.Load(cmd, false, true)
	if err != nil {
		return err
	}
	from, err := sideOf(a, cmd, moveTerm{"--from", config.MoveFromVariable, f.from, func() (moveSide, error) { return ownSide(l) }})
	if err != nil {
		return err
	}
	to, err := sideOf(a, cmd, moveTerm{"--to", config.MoveToVariable, f.to, func() (moveSide, error) { return nextSide(l) }})
	if err != nil {
		return err
	}
	if config.SameRedis(from.Address, to.Address) {
		return fmt.Errorf("%w: --from and --to are the same Redis, %s; name another one with --to", ops.ErrRefused, wholeAddress(to.Address))
	}
	here, there := from.Client(), to.Client()
	defer here.Close()
	defer there.Close()
	cfg := move.Config{Namespace: l.Namespace, Partitions: f.partitions, MaxSkew: l.Node.MaxSkew, FromName: wholeAddress(from.Address), ToName: wholeAddress(to.Address)}
	mover, err := move.New(here, there, cfg)
	if err != nil {
		return l.Refused(err)
	}
	ctx, stop := a.Interruptible()
	defer stop()
	t := moveTool{App: a, ctx: ctx, mover: mover, ns: l.Namespace, from: cfg.FromName, to: cfg.ToName}
	for _, side := range []redis.UniversalClient{here, there} {
		of, err := ops.New(side, l.Namespace)
		if err != nil {
			return l.Refused(err)
		}
		t.notes = append(t.notes, of.As(a.Actor()))
	}
	return explainedSide(run(t), l.Namespace, from, to)
}

// moveTerm is how one side of a move may be given.
type moveTerm struct {
	flag, variable, text string
	otherwise            func() (moveSide, error)
}

// moveSide is one side's Redis, with the name of the flag, the variable or the setting that gives
// it.
type moveSide struct {
	redisconn.Address
	from string
}

// sideOf returns the Redis of one side: by the flag, the environment, or the configuration.
func sideOf(a *command.App, cmd *cobra.Command, m moveTerm) (moveSide, error) {
	name, text, given := m.flag, m.text, cmd.Flags().Changed(strings.TrimPrefix(m.flag, "--"))
	var err error
	if !given {
		name, text, given, err = config.Secret(a.Env, m.variable)
	}
	side := moveSide{from: name}
	switch {
	case err != nil:
	case !given:
		return m.otherwise()
	default:
		if side.Address, err = redisconn.Parse(text); err != nil {
			err = fmt.Errorf("the URL %w", err)
		}
	}
	if err != nil {
		var faults config.Faults
		faults.Add(config.Place{Name: name}, m.flag, "%v", err)
		return moveSide{}, faults.Err()
	}
	return side, nil
}

// ownSide is the configured Redis, the default origin of a move.
func ownSide(l *config.Loaded) (moveSide, error) {
	if l.Redis.Mode == config.ModeStandalone && l.Redis.URL == "" {
		return moveSide{}, command.Usagef("--from is missing; name the Redis to move from with it, %s, or redis.url", config.MoveFromVariable)
	}
	at, err := l.Address()
	return moveSide{at, l.RedisFrom()}, err
}

// nextSide is redis.next, the default destination of a move.
func nextSide(l *config.Loaded) (moveSide, error) {
	if l.Redis.Next == "" {
		return moveSide{}, command.Usagef("--to is missing; name the Redis to move to with it, %s, or redis.next", config.MoveToVariable)
	}
	at, err := redisconn.Parse(l.Redis.Next)
	return moveSide{at, l.From.Of("redis.next").At("redis.next")}, err
}

// whole is the name of an address, with its database when that is not the usual one.
func wholeAddress(a redisconn.Address) string {
	if db := a.Database(); db != 0 {
		return fmt.Sprintf("%s, database %d", a.String(), db)
	}
	return a.String()
}

// explainedSide turns an error of one side of a move into words, with the flag, the variable or the
// setting that names the side. Beside a side's error the step names the side.
func explainedSide(err error, namespace string, from, to moveSide) error {
	for _, side := range []struct {
		variable string
		moveSide
	}{{config.MoveFromVariable, from}, {config.MoveToVariable, to}} {
		if err == nil {
			return nil
		}
		step, _, named := strings.Cut(err.Error(), wholeAddress(side.Address)+": ")
		if !named {
			continue
		}
		t := config.TroubleOf(side.Address, namespace, err)
		switch {
		case t == nil:
			return err
		case t.Kind != redisconn.KindSetting:
			return command.Reword(side.from+": "+step+t.Error(), err)
		}
		words := step + t.Error()
		if t.Password {
			words += "; " + side.variable + "_FILE names a file that holds the URL, so that it stands in no command line"
		}
		var faults config.Faults
		faults.Add(config.Place{Name: side.from}, side.from, "%s", words)
		return faults.Err()
	}
	return err
}
