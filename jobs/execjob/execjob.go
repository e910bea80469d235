package execjob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
)

// grace is the time from SIGTERM to SIGKILL.
const grace = 5 * time.Second

// Command is a command with its directory and environment.
type Command struct {
	// Command is the program and its arguments. The program is looked up in the node's
	// own PATH. Required.
	Command []string
	// Dir is the working directory. Default: the node's.
	Dir string
	// Env is added to the environment. Names that the run sets are refused; see Sets. Default none.
	Env map[string]string
	// Checkpoints gives the command a file for its checkpoint and one for its progress. Default: none.
	Checkpoints bool
	// Result gives the command a file for its result: JSON, which the jobs that follow get as payload. Default: none.
	Result bool
}

// Validate checks the command without running it. The error joins a *jobs.FieldError for each
// fault, with the fields command, dir and env.NAME.
func (c Command) Validate() error {
	var faults []error
	add := func(field, msg string) {
		faults = append(faults, &jobs.FieldError{Field: field, Msg: msg})
	}
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		add("command", `is empty; write the program and its arguments, such as [sh, -c, "echo hello"]`)
	case strings.Contains(strings.Join(c.Command, ""), "\x00"):
		add("command", "holds a NUL character, which an argument cannot")
	}
	if strings.Contains(c.Dir, "\x00") {
		add("dir", "holds a NUL character, which a path cannot")
	}
	for _, name := range sortedKeys(c.Env) {
		before, _, pair := strings.Cut(name, "=")
		switch {
		case pair: // the rest is meant as the value, which may be secret
			add(fmt.Sprintf("env.%q", before+"=..."), "is not a name of a variable; write the name as the key, and the text after the = as its value")
		case name == "" || strings.Contains(name, "\x00"):
			add(fmt.Sprintf("env.%q", name), "is not a name of a variable; use a text without = and NUL")
		case Sets(name):
			add("env."+name, "is set by the run; use another name")
		case len(name)+len(c.Env[name]) > maxVariable:
			add("env."+name, fmt.Sprintf("is longer than the %d bytes a variable can have", maxVariable))
		case strings.Contains(c.Env[name], "\x00"):
			add("env."+name, "holds a NUL character, which a variable cannot")
		}
	}
	return errors.Join(faults...)
}

// New returns a job's function that runs the command once for each try of a run.
//
// The function's error wraps the context's cause when the context ended the command, and an
// *exec.ExitError, with the last lines of the output, when the command failed; else it is the
// reason why the command could not be started. It is jobs.Permanent when Validate refuses the
// command, or the run has a value that does not fit into a variable.
func New(c Command) jobs.Func {
	r := runner{command: c, invalid: c.Validate(), grace: grace}
	r.command.Command = append([]string(nil), c.Command...)
	r.command.Env = make(map[string]string, len(c.Env))
	for name, value := range c.Env {
		r.command.Env[name] = value
	}
	return r.run
}

type runner struct {
	command Command
	invalid error
	grace   time.Duration
}

func (r runner) run(ctx context.Context, run *jobs.Run) error {
	if r.invalid != nil {
		return jobs.Permanent(fmt.Errorf("command: %w", r.invalid))
	}
	name := r.command.Command[0]
	if ctx.Err() != nil {
		return fmt.Errorf("command %s not started: %w", name, context.Cause(ctx))
	}
	env, err := environment(r.inherited(), r.command.Env, run)
	if err != nil {
		return jobs.Permanent(fmt.Errorf("command %s not started: %w", name, err))
	}
	if trace := jobs.Traceparent(ctx); trace != "" {
		env = append(env, "TRACEPARENT="+trace) // the last one of a name counts
	}
	kept, err := newFiles(r.command, run)
	if err != nil {
		return fmt.Errorf("command %s not started: %w", name, err)
	}
	defer kept.remove()
	if ctx.Err() != nil { // its checkpoint may not have been read
		return fmt.Errorf("command %s not started: %w", name, context.Cause(ctx))
	}
	env = append(env, kept.environment()...)
	cmd := exec.Command(name, r.command.Command[1:]...)
	cmd.Dir = r.command.Dir
	cmd.Env = env
	group := NewGroup(cmd)
	if lease := run.Lease(); lease != nil {
		group.EndWith(lease)
	}
	out, err := startCaptured(cmd, group, run.Output())
	if err != nil {
		return fmt.Errorf("command %s not started: %w", name, err)
	}
	defer group.Close()
	stop := kept.watch(ctx)
	ended, err := r.supervise(ctx, cmd, group, run)
	stop(err != nil || ended != nil)
	out.finish()
	if r.command.Result && err == nil && ended == nil {
		keepResult(kept.result, run)
	}
	return result(name, ended, err, run.Written())
}

// inherited returns the node's environment, with the command's directory as PWD. os/exec sets PWD only without an environment.
func (r runner) inherited() []string {
	env := os.Environ()
	if r.command.Dir == "" {
		return env
	}
	if dir, err := filepath.Abs(r.command.Dir); err == nil {
		env = append(env, "PWD="+dir)
	}
	return env
}

// supervise waits for the command, and ends the rest of its group. cause is the context's, if the
// context ended the command; err is the command's exit.
func (r runner) supervise(ctx context.Context, cmd *exec.Cmd, g *Group, run *jobs.Run) (cause, err error) {
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case err = <-exited:
		return nil, errors.Join(err, g.clear(time.Now().Add(r.grace)))
	case <-ctx.Done():
	}
	select {
	case err = <-exited: // before the signal: its own result counts
		return nil, errors.Join(err, g.clear(time.Now().Add(r.grace)))
	default:
	}
	deadline := time.Now().Add(r.grace)
	g.Terminate()
	cause = context.Cause(ctx)
	err = g.await(exited, deadline, func(why error) {
		const words = "the command does not end though it was killed; the run goes on until it ends"
		run.Logger().Warn(words, "cause", cause, "error", why)
		fmt.Fprintf(run.Output(), "escapement: %s: %v (%v)\n", words, why, cause)
	})
	return cause, errors.Join(err, g.clear(deadline))
}

// result returns the error for the end of a command.
func result(name string, cause, err error, output []byte) error {
	if cause == nil && err == nil {
		return nil
	}
	said := lastLines(output, maxQuoted)
	if said != "" {
		said = ": " + said
	}
	switch {
	case cause == nil:
		return fmt.Errorf("command %s: %w%s", name, err, said)
	case err == nil:
		return fmt.Errorf("command %s ended: %w (exit status 0)%s", name, cause, said)
	default:
		return fmt.Errorf("command %s ended: %w (%w)%s", name, cause, err, said)
	}
}
