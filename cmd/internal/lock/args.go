package lock

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking"
)

// helpFlag requests our help, unless it stands behind a word of the command: our help must not pass
// for the command's success.
type helpFlag struct {
	lock  *cobra.Command
	given bool
}

func (h *helpFlag) String() string { return strconv.FormatBool(h.given) }
func (h *helpFlag) Type() string   { return "bool" }

func (h *helpFlag) Set(text string) (err error) {
	if len(h.lock.Flags().Args()) > 1 {
		return errors.New("it is the command's")
	}
	h.given, err = strconv.ParseBool(text)
	return err
}

// dashMissing explains the missing --; args begin with NAME and the command's first word.
func dashMissing(args []string) error {
	return fmt.Errorf("-- is missing, and without it the command's flags are taken for ours; write %s %s -- %s ...", lockName, print.Quote(args[0]), print.Quote(args[1]))
}

// wantsCommand checks the arguments of lock: NAME -- COMMAND ...
func wantsCommand(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return errors.New("NAME is missing")
	case dash < 0 && len(args) > 1:
		return dashMissing(args)
	case dash < 0:
		return errors.New("-- and COMMAND are missing: lock NAME -- COMMAND ...")
	case dash > 1:
		return fmt.Errorf("unexpected argument %s in front of --", print.Quote(args[1]))
	case len(args) == 1 || args[1] == "":
		return errors.New("COMMAND is missing behind --")
	}
	return nil
}

// lockOptions reads the flags of lock.
func lockOptions(ttl, wait, delay string, permits int) (o locking.Options, err error) {
	if o.TTL, err = spec.ParseDuration(ttl); err != nil {
		return o, command.Usagef("--ttl: %v", err)
	}
	if o.TTL <= 0 { // to the library, 0 is the default
		return o, command.Usagef("--ttl %s is not more than 0; use at least %s", ttl, 3*lockstore.Margin)
	}
	if o.Wait, err = spec.ParseDuration(wait); err != nil {
		return o, command.Usagef("--wait: %v", err)
	}
	if o.Delay, err = spec.ParseDuration(delay); err != nil {
		return o, command.Usagef("--delay: %v", err)
	}
	if permits < 1 { // to the library, 0 is a lock
		return o, command.Usagef("--permits %d is not more than 0; use 1 for a lock, 2 or more for a semaphore", permits)
	}
	o.Permits, o.Holder = permits, thisProcess("escapement lock")
	return o, nil
}
