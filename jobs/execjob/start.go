package execjob

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/escapement/escapement/jobs/boundedfile"
	"github.com/escapement/escapement/jobs/internal/machine"
)

// whyNotStarted returns the error of a command that was not started, with the missing file: the
// system's own error always names the program.
func whyNotStarted(cmd *exec.Cmd, err error) error {
	if cmd.Dir != "" {
		info, bad := boundedfile.Stat(cmd.Dir)
		if bad == nil && !info.IsDir() {
			bad = syscall.ENOTDIR
		}
		if bad != nil {
			return fmt.Errorf("its directory %s: %w", cmd.Dir, bare(bad))
		}
	}
	program := cmd.Path
	if !filepath.IsAbs(program) {
		program = filepath.Join(cmd.Dir, program)
	}
	_, absent := boundedfile.Stat(program)
	switch why := bare(err); {
	case errors.Is(err, syscall.ENOENT) && absent == nil:
		return fmt.Errorf("%s is there, and %s is not: %w", program, loader(program), why)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is no program of this machine, and no script with #! in its first line: %w", program, why)
	case errors.Is(err, syscall.EACCES) && absent == nil && cmd.Dir != "":
		return fmt.Errorf("this user may not execute %s, or not enter the directory %s: %w", program, cmd.Dir, why)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("its arguments and variables are too long together: %w", why)
	}
	return machine.Fault(err)
}

// bare is why a call failed, without the call and its file.
func bare(err error) error {
	if p := new(fs.PathError); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// maxFirstLine bounds the first line of a script, in bytes, as Linux does.
const maxFirstLine = 256

// loader names the program that a file needs to be executed, for people.
func loader(program string) string {
	f, err := boundedfile.Open(program)
	if err != nil {
		return "what executes it"
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(io.LimitReader(f, maxFirstLine), maxFirstLine).ReadString('\n')
	of, script := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "#!")
	switch {
	case !script:
		return "what loads it (it may be built for another system)"
	case strings.HasSuffix(of, "\r"):
		return fmt.Sprintf("%q, which its first line names with the line end of Windows,", of)
	}
	return fmt.Sprintf("%q, which its first line names,", strings.TrimSpace(of))
}
