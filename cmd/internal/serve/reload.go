package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/boundedfile"
	"github.com/escapement/escapement/scheduler"
)

// pollEvery is how often a node looks whether its files have changed.
const pollEvery = time.Second

// reloader changes the jobs of a process's nodes when the files of the configuration change, or at
// SIGHUP.
type reloader struct {
	slots    []*nodeSlot
	log      *slog.Logger
	hangups  chan os.Signal
	terminal func() bool // there is a terminal, and SIGHUP may mean that it is gone
	load     func(config.Source) (*config.Loaded, error)
	busy     chan struct{} // closed when the call of files before has returned; nil before the first

	started *config.Loaded // whose settings outside the jobs the nodes have
	now     *config.Loaded // whose jobs they have
	read    config.Stamp   // of the files that were read last
	seen    config.Stamp   // of files that may still be written
	ignored string         // the last settings that were logged to need a restart
}

// newReloader listens for SIGHUP from now on. end gives the signal back.
func newReloader(slots []*nodeSlot, log *slog.Logger) (r *reloader, end func()) {
	l := slots[0].l
	r = &reloader{slots: slots, log: log, hangups: make(chan os.Signal, 1), started: l, now: l, read: l.Stamp, load: config.Load, terminal: func() bool { return false }}
	if !signal.Ignored(syscall.SIGHUP) && hasTerminal() { // nohup ignores it: the terminal's end then means nothing
		r.terminal = hasTerminal
	}
	signal.Notify(r.hangups, syscall.SIGHUP)
	return r, func() { signal.Stop(r.hangups) }
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err == nil {
		_ = f.Close()
	}
	return err == nil
}

// run reloads until ctx ends, or the terminal is gone.
func (r *reloader) run(ctx context.Context) error {
	had := r.terminal()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.hangups:
			if had && !r.terminal() {
				r.log.Info("stopping: the terminal is gone")
				return nil
			}
			r.reload(ctx)
		case <-tick.C:
			r.check(ctx)
		}
	}
}

// filesWithin bounds a look at all files of a configuration, and a reload. It is longer than
// [boundedfile.Within], so that a single file without an answer is named.
const filesWithin = time.Minute

// files calls f, which only reads files, and reports whether f has returned within filesWithin and
// before the end of ctx. A hanging file system leaves one f behind: f is not called again before
// that call has returned.
func (r *reloader) files(ctx context.Context, f func()) bool {
	ctx, cancel := context.WithTimeout(ctx, filesWithin)
	defer cancel()
	if r.busy != nil {
		select {
		case <-r.busy:
		case <-ctx.Done():
			return false
		}
	}
	done := make(chan struct{})
	r.busy = done
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// refuseUnread refuses files that do not answer. The first look that they answer reads them.
func (r *reloader) refuseUnread(ctx context.Context) {
	if r.read = (config.Stamp{}); ctx.Err() == nil {
		r.refuse(fmt.Errorf("the files: %w within %s; look after their file system", boundedfile.ErrNoAnswer, filesWithin))
	}
}

// check reloads when the files have changed, and have not changed since the look before: writing
// them may take a moment.
func (r *reloader) check(ctx context.Context) {
	read, file := r.read, r.now.Src.File
	var now config.Stamp
	if !r.files(ctx, func() { now = read.Again(file) }) {
		if len(read.Files) > 0 { // else they are refused
			r.refuseUnread(ctx)
		}
		return
	}
	switch settled := now.Same(r.seen); {
	case now.Same(r.read):
	case !settled:
		r.seen = now
	default:
		r.reload(ctx)
	}
}

// reload reads the files, and changes the nodes' jobs to the files' jobs. Refused files change
// nothing.
func (r *reloader) reload(ctx context.Context) {
	src, load := r.now.Src, r.load
	var l *config.Loaded
	var err error
	var now config.Stamp
	if !r.files(ctx, func() { l, err = load(src); now = l.Stamp.Again(src.File) }) {
		r.refuseUnread(ctx)
		return
	}
	if r.read = l.Stamp; !r.read.Same(now) {
		return // they changed under the reader: the next looks find out
	}
	if err == nil {
		err = r.guarded(l)
	}
	if err != nil {
		r.refuse(err)
		return
	}
	r.announce("")
	r.needRestart(l)
	c := config.CompareJobs(&r.now.Config, &l.Config)
	if c.Empty() && l.Node.Revision == r.now.Node.Revision {
		r.log.Info("configuration read again: no job has changed", "file", l.From.File, "jobs", len(l.JobList))
		return
	}
	change := scheduler.Change{Remove: c.Out, Revision: l.Node.Revision}
	change.Add = slices.DeleteFunc(slices.Clone(l.JobList), func(j jobs.Job) bool { return !c.In[j.Name] })
	for _, s := range r.slots {
		err = errors.Join(err, s.change(l.JobList, change))
	}
	if err != nil {
		r.refuse(err)
		return
	}
	r.now = l
	c.Log(r.log)
	r.log.Info("configuration reloaded", "file", l.From.File, "added", len(c.Added), "changed", len(c.Changed), "removed", len(c.Removed), "jobs", len(l.JobList))
}

// guarded refuses the first job with a guard: its locks are opened when the process starts.
func (r *reloader) guarded(l *config.Loaded) error {
	has := func(j jobs.Job) bool { return j.Guard != "" }
	if i := slices.IndexFunc(l.JobList, has); i >= 0 && !slices.ContainsFunc(r.started.JobList, has) {
		var faults config.Faults
		path := "jobs[" + l.JobList[i].Name + "].guard"
		faults.Add(l.From.Of(path), path, "no job had a guard when this process started, so it has no locks for one; restart it")
		return faults.Err()
	}
	return nil
}

// announce has the nodes announce where the files are wrong; "" when they were not refused.
func (r *reloader) announce(where string) {
	for _, s := range r.slots {
		s.refuse(where)
	}
}

// refuse logs the faults of the files, and has the nodes announce where the first fault is: every
// reader of the namespace sees the announcement, and a file's text may be secret.
func (r *reloader) refuse(err error) {
	const words = "configuration refused: the node keeps its jobs"
	var wrong config.Error
	if !errors.As(err, &wrong) {
		r.announce(r.now.Src.File)
		r.log.Error(words, "file", r.now.Src.File, "error", err)
		return
	}
	where := wrong[0].Where(r.now.JobList)
	if len(wrong) > 1 {
		where += fmt.Sprintf(" (and %d more)", len(wrong)-1)
	}
	r.announce(where)
	for _, f := range wrong[:min(len(wrong), config.MaxLogged)] {
		at := []any{"file", f.File}
		switch {
		case f.Name != "":
			at = []any{"variable", f.Name}
		case f.Line > 0:
			at = append(at, "line", f.Line)
		}
		if f.Path != "" {
			at = append(at, "setting", f.Path)
		}
		r.log.Error(words, append(at, "error", f.Msg)...)
	}
	if more := len(wrong) - config.MaxLogged; more > 0 {
		r.log.Error(words, "more", more)
	}
}

// needRestart logs the settings outside the jobs that differ from the settings at the start, once.
func (r *reloader) needRestart(l *config.Loaded) {
	names := strings.Join(config.ChangedSettings(&r.started.Config, &l.Config), ", ")
	if names != r.ignored && names != "" {
		r.log.Warn("settings have changed that count after a restart of this process", "settings", names, "file", l.From.File)
	}
	r.ignored = names
}
