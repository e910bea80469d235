package execjob

import (
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
)

// lookEvery is how often the files of a command are looked at.
const lookEvery = time.Second

// files are where a command leaves its checkpoint, says how far it is, and leaves its result, in a directory that only the node's user can
// read.
type files struct {
	dir                  string
	run                  *jobs.Run
	checkpoints          bool // the command has checkpoints
	checkpoint, progress seenFile
	result               string // its path; "" for a command without one
	told                 string // the last error that was told
}

// seenFile is a file as it was read last.
type seenFile struct {
	path string
	info fs.FileInfo // nil when there was none
}

// newFiles makes the directory, with the run's checkpoint if there is one. It returns nil for a command that has no files. The caller
// removes the directory.
func newFiles(c Command, run *jobs.Run) (*files, error) {
	if !c.Checkpoints && !c.Result {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "escapement-*")
	if err != nil {
		return nil, fmt.Errorf("make a directory for its files: %w", err)
	}
	f := &files{dir: dir, run: run, checkpoints: c.Checkpoints}
	if c.Result {
		f.result = filepath.Join(dir, "result")
	}
	if !c.Checkpoints {
		return f, nil
	}
	f.checkpoint.path, f.progress.path = filepath.Join(dir, "checkpoint"), filepath.Join(dir, "progress")
	if data := run.Saved(); data != nil {
		if err := os.WriteFile(f.checkpoint.path, data, 0o600); err != nil {
			f.remove()
			return nil, fmt.Errorf("write its checkpoint: %w", err)
		}
		f.checkpoint.info, _ = os.Stat(f.checkpoint.path)
	}
	return f, nil
}

// remove removes the directory; a nil f has none.
func (f *files) remove() {
	if f != nil {
		_ = os.RemoveAll(f.dir)
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
				f.look(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func(failed bool) {
		cancel()
		<-ended
		if failed {
			f.look(context.WithoutCancel(ctx))
		}
	}
}

// look saves the checkpoint and tells the progress, where their files have changed.
func (f *files) look(ctx context.Context) {
	if info, changed := f.progress.changed(); changed {
		if text, err := os.ReadFile(f.progress.path); err == nil && f.tell(string(text)) {
			f.progress.info = info
		}
	}
	info, changed := f.checkpoint.changed()
	if !changed {
		return
	}
	err := f.save(ctx, info.Size())
	switch {
	case err == nil, errors.As(err, new(*jobs.CheckpointSizeError)):
		f.checkpoint.info = info
	case ctx.Err() != nil:
		return // the last look repeats it
	}
	if err == nil {
		f.told = ""
	} else if text := err.Error(); text != f.told {
		f.told = text
		f.run.Logger().Warn("the command's checkpoint was not saved", "error", err)
		fmt.Fprintln(f.run.Output(), "escapement: the checkpoint was not saved:", text)
	}
}

// save saves the checkpoint, a file of so many bytes.
func (f *files) save(ctx context.Context, size int64) error {
	if size > jobs.MaxCheckpoint {
		return &jobs.CheckpointSizeError{Size: int(size), Limit: jobs.MaxCheckpoint} // and it is not read
	}
	data, err := os.ReadFile(f.checkpoint.path)
	if err != nil {
		return err
	}
	return f.run.Save(ctx, data)
}

// changed reports whether the file is another one than was read last, or has changed. A file that was removed has not.
func (s *seenFile) changed() (fs.FileInfo, bool) {
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, false
	}
	same := s.info != nil && os.SameFile(s.info, info) && s.info.Size() == info.Size() && s.info.ModTime().Equal(info.ModTime())
	return info, !same
}

// tell reads "done total note". It reports false for text that is none, which may be written only half.
func (f *files) tell(text string) bool {
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
