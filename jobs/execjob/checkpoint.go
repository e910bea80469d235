package execjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/boundedfile"
	"github.com/escapement/escapement/jobs/internal/machine"
)

// lookEvery is how often the files of a command are looked at.
const lookEvery = time.Second

// maxProgressFile bounds the file of the progress, in bytes: one line.
const maxProgressFile = 4 << 10

// files are a command's files for its checkpoint, its progress and its result, in a directory that
// only the node's user can read.
type files struct {
	dir                  *runDir
	run                  *jobs.Run
	checkpoints          bool // the command has checkpoints
	checkpoint, progress seenFile
	result               string // its path; "" for a command without one
}

// seenFile is a file as it was read last.
type seenFile struct {
	what     string // for people
	path     string
	limit    int64 // bytes
	tooLarge func(*boundedfile.SizeError) error

	info     fs.FileInfo // nil when there was none
	reported string      // the fault that was reported last; "" once the content was taken
}

// newFiles makes the directory, with the run's checkpoint if there is one. It returns nil for a command that has no files. The caller
// removes the directory.
func newFiles(c Command, run *jobs.Run) (*files, error) {
	if !c.Checkpoints && !c.Result {
		return nil, nil
	}
	dir, err := newRunDir()
	if err != nil {
		return nil, err
	}
	f := &files{dir: dir, run: run, checkpoints: c.Checkpoints}
	if c.Result {
		f.result = filepath.Join(dir.path, "result")
	}
	if !c.Checkpoints {
		return f, nil
	}
	f.checkpoint = seenFile{what: "checkpoint", path: filepath.Join(dir.path, "checkpoint"), limit: jobs.MaxCheckpoint}
	f.checkpoint.tooLarge = func(e *boundedfile.SizeError) error {
		return &jobs.CheckpointSizeError{Size: int(e.Size), Limit: int(e.Limit)}
	}
	f.progress = seenFile{what: "progress", path: filepath.Join(dir.path, "progress"), limit: maxProgressFile}
	f.progress.tooLarge = func(e *boundedfile.SizeError) error {
		return fmt.Errorf("%w; write one line into another file, and rename it", e)
	}
	if data := run.Saved(); data != nil {
		if err := os.WriteFile(f.checkpoint.path, data, 0o600); err != nil {
			f.remove()
			return nil, machine.Fault(fmt.Errorf("write its checkpoint: %w", err))
		}
		f.checkpoint.info, _ = os.Lstat(f.checkpoint.path)
	}
	return f, nil
}

// remove removes the directory; a nil f has none.
func (f *files) remove() {
	if f == nil {
		return
	}
	if err := f.dir.remove(); err != nil { // as of a command that has become another user
		f.run.Logger().Warn("the files of the command could not be removed; remove the directory", "dir", f.dir.path, "error", err)
	}
}

func (f *files) environment() (env []string) {
	if f == nil {
		return nil
	}
	if f.checkpoints {
		env = append(env, checkpointFile+"="+f.checkpoint.path, progressFile+"="+f.progress.path)
	}
	if f.result != "" {
		env = append(env, resultFile+"="+f.result)
	}
	return env
}

// watch looks at the files of a checkpoint and its progress until stop is called; stop looks once more when the command has failed.
// A nil f watches nothing.
func (f *files) watch(ctx context.Context) (stop func(failed bool)) {
	if f == nil || !f.checkpoints {
		return func(bool) {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the command may save while it is being ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f.takeChanged(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func(failed bool) {
		cancel()
		<-ended
		if failed {
			f.takeChanged(context.WithoutCancel(ctx))
		}
	}
}

// takeChanged saves the checkpoint and reports the progress, where their files have changed.
func (f *files) takeChanged(ctx context.Context) {
	f.progress.takeChanged(f.run, func(text []byte) error {
		if !f.reportProgress(string(text)) {
			return errAgain
		}
		return nil
	})
	f.checkpoint.takeChanged(f.run, func(data []byte) error {
		err := f.run.Save(ctx, data)
		if err != nil && ctx.Err() != nil {
			return errAgain // the last look repeats it
		}
		return err
	})
}

// errAgain is the error of a file that the next look reads again, without a report.
var errAgain = errors.New("read again")

// takeChanged hands the content of a file that has changed to take.
func (s *seenFile) takeChanged(run *jobs.Run, take func([]byte) error) {
	if info, changed := s.changed(); changed {
		s.read(run, info, take)
	}
}

// read hands the content of the file of info to take. A content that was not taken is reported once,
// in the log and in the output.
func (s *seenFile) read(run *jobs.Run, info fs.FileInfo, take func([]byte) error) {
	data, err := boundedfile.ReadDirect(s.path, s.limit)
	size := new(boundedfile.SizeError)
	kind := "" // names the fault: a file that grows is reported once
	switch {
	case errors.As(err, &size):
		err, kind = s.tooLarge(size), "too large"
		s.info = info
	case err == nil:
		if err = take(data); err == nil {
			s.info, s.reported = info, ""
		}
	}
	gone := errors.Is(err, fs.ErrNotExist) // removed since: as a file that was removed before the look
	if kind = cmp.Or(kind, fmt.Sprint(err)); err == nil || gone || errors.Is(err, errAgain) || kind == s.reported {
		return
	}
	s.reported = kind
	notKept(run, s.what, err)
}

// notKept writes to the log and to the output why the content of a file is not kept. The run goes
// on.
func notKept(run *jobs.Run, what string, err error) {
	err = bare(err) // the name is the node's
	run.Logger().Warn("what the command left in a file was not kept", "file", what, "error", err)
	fmt.Fprintf(run.Output(), "escapement: the %s was not kept: %v\n", what, err)
}

// changed reports whether the file is another one than was read last, or has changed. A file that was removed has not.
func (s *seenFile) changed() (fs.FileInfo, bool) {
	info, err := boundedfile.Lstat(s.path)
	if err != nil {
		return nil, false
	}
	if s.info == nil || !os.SameFile(s.info, info) {
		return info, true
	}
	return info, s.info.Size() != info.Size() || !s.info.ModTime().Equal(info.ModTime())
}

// reportProgress reads "done total note". It returns false for another text, which may be written only half.
func (f *files) reportProgress(text string) bool {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	done, rest, _ := strings.Cut(line, " ")
	n, err := strconv.ParseInt(done, 10, 64)
	if err != nil {
		return false
	}
	word, note, _ := strings.Cut(strings.TrimSpace(rest), " ")
	total, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		total, note = 0, rest
	}
	f.run.Progress(n, total, strings.TrimSpace(note))
	return true
}
