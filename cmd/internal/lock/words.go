package lock

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"time"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking"
)

// explainRefusal returns why a lock could not be had, in the words of the command line. listed: locks get
// lists it.
func explainRefusal(name string, wait time.Duration, listed bool, err error) error {
	var held *locking.HeldError
	if errors.As(err, &held) {
		waited := "not waited for: --wait D waits"
		if wait > 0 {
			waited = "waited for " + spec.FormatDuration(wait) + " in vain: wait longer with --wait"
		}
		until := ""
		if held.Until > 0 { // else unknown
			until = ", for " + print.Brief(held.Until) + " more unless it is renewed"
		}
		if listed {
			waited += ", and locks get shows who has it"
		}
		return command.Reword(fmt.Sprintf("lock %q is held by %s%s; %s", name, holderName(held.Holder, held.Owner), until, waited), err)
	}
	return asInput(err)
}

// holderName names a holder: its own text, or its owner value.
func holderName(holder, owner string) string { return cmp.Or(holder, "owner "+owner) }

// notStarted returns why a command was not run; the exit code is the one a shell has for that.
func notStarted(a *command.App, name string, err error) error {
	code, words := exitNotRunnable, "cannot be executed"
	var looked *exec.Error
	var started *fs.PathError // without one, the command exists and another file is missing
	named := errors.As(err, &looked) || errors.As(err, &started)
	if named && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)) {
		code, words = exitNoCommand, "was not found"
	}
	switch {
	case looked != nil:
		err = looked.Err // other errors have the command once more
	case started != nil:
		err = started.Err
	}
	a.Report("command %s %s: %v", print.Quote(name), words, err)
	return command.Ended(code)
}
