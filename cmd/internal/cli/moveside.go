package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/move"
)

// The variables behind --from and --to; with _FILE behind them they name a file that holds the URL.
const (
	moveFromVariable = envPrefix + "MOVE_FROM"
	moveToVariable   = envPrefix + "MOVE_TO"
)

// moveStep connects a step to both Redis.
func (a *app) moveStep(cmd *cobra.Command, f moveFlags, run func(moveTool) error) error {
	if f.partitions < 0 || f.partitions > 1024 {
		return usagef("--partitions %d is outside 0 to 1024; 0 is as many as before", f.partitions)
	}
	l, err := a.loadTool(cmd)
	if err != nil {
		return err
	}
	from, err := a.moveSide(cmd, moveTerm{"--from", moveFromVariable, f.from, l.ownAddress})
	if err != nil {
		return err
	}
	to, err := a.moveSide(cmd, moveTerm{"--to", moveToVariable, f.to, l.nextAddress})
	if err != nil {
		return err
	}
	if same(from, to) {
		return fmt.Errorf("%w: --from and --to are the same Redis, %s; name another one with --to", scheduler.ErrRefused, wholeAddress(to))
	}
	here, there := from.Client(), to.Client()
	defer here.Close()
	defer there.Close()
	cfg := move.Config{Namespace: l.Namespace, Partitions: f.partitions, MaxSkew: l.Node.MaxSkew, FromName: wholeAddress(from), ToName: wholeAddress(to)}
	mover, err := move.New(here, there, cfg)
	if err != nil {
		return l.refused(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	t := moveTool{ctx: ctx, mover: mover, ns: l.Namespace, from: cfg.FromName, to: cfg.ToName}
	for _, side := range []redis.UniversalClient{here, there} {
		of, err := scheduler.NewClient(side, l.Namespace)
		if err != nil {
			return l.refused(err)
		}
		t.notes = append(t.notes, of.As(a.actor()))
	}
	return explainedSide(run(t), l.Namespace, from, to)
}

// moveTerm is how one side of a move may be given.
type moveTerm struct {
	flag, variable, text string
	otherwise            func() (redisconn.Address, error)
}

// moveSide is the Redis of one side: by the flag, the environment, or the configuration.
func (a *app) moveSide(cmd *cobra.Command, m moveTerm) (redisconn.Address, error) {
	name, text, given := m.flag, m.text, cmd.Flags().Changed(strings.TrimPrefix(m.flag, "--"))
	if !given {
		secret, inFile, err := secretFile(a.env, m.variable)
		variable, set := a.env[m.variable]
		var faults faultList
		switch {
		case inFile && set:
			faults.add(place{name: m.variable}, m.flag, "%s_FILE is set too; keep one of them", m.variable)
		case err != nil:
			faults.add(place{name: m.variable + "_FILE"}, m.flag, "%v", err)
		}
		if err := faults.err(); err != nil {
			return redisconn.Address{}, err
		}
		switch {
		case inFile:
			name, text, given = m.variable+"_FILE", secret, true
		case set:
			name, text, given = m.variable, variable, true
		}
	}
	if !given {
		return m.otherwise()
	}
	at, err := redisconn.Parse(text)
	if err != nil {
		var faults faultList
		faults.add(place{name: name}, m.flag, "%v", err)
		return redisconn.Address{}, faults.err()
	}
	return at, nil
}

// ownAddress is the configured Redis, where nothing else says where a move begins.
func (l *loaded) ownAddress() (redisconn.Address, error) {
	if l.Redis.Mode == modeStandalone && l.Redis.URL == "" {
		return redisconn.Address{}, usagef("--from is missing; name the Redis to move from with it, %s, or redis.url", moveFromVariable)
	}
	return l.address()
}

// nextAddress is redis.next, where nothing else says where a move goes.
func (l *loaded) nextAddress() (redisconn.Address, error) {
	if l.Redis.Next == "" {
		return redisconn.Address{}, usagef("--to is missing; name the Redis to move to with it, %s, or redis.next", moveToVariable)
	}
	return redisconn.Parse(l.Redis.Next)
}

// whole is the name of an address, with its database when that is not the usual one.
func wholeAddress(a redisconn.Address) string {
	if db := a.Database(); db != 0 {
		return fmt.Sprintf("%s, database %d", a.String(), db)
	}
	return a.String()
}

// sideError is an error of a step in other words.
type sideError struct {
	words string
	err   error
}

func (e sideError) Error() string { return e.words }
func (e sideError) Unwrap() error { return e.err }

// explainedSide turns an error of one side of a move into words, with the flag that names the side. A step names the side in
// front of what the side has answered.
func explainedSide(err error, namespace string, from, to redisconn.Address) error {
	for _, side := range []struct {
		flag, variable string
		redisconn.Address
	}{{"--from", moveFromVariable, from}, {"--to", moveToVariable, to}} {
		if err == nil {
			return nil
		}
		step, _, named := strings.Cut(err.Error(), wholeAddress(side.Address)+": ")
		if !named {
			continue
		}
		t := troubleOf(side.Address, namespace, err)
		switch {
		case t == nil:
			return err
		case t.Kind != redisconn.KindSetting:
			return sideError{side.flag + ": " + step + t.Error(), err}
		}
		words := step + t.Error()
		if t.Password {
			words += "; " + side.variable + "_FILE names a file that holds the URL, so that it stands in no command line"
		}
		var faults faultList
		faults.add(place{name: side.flag}, side.flag, "%s", words)
		return faults.err()
	}
	return err
}
