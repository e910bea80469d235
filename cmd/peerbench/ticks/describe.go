package ticks

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/cmd/peerbench/figures"
)

// contendersModules are the modules whose versions are listed.
var contendersModules = []string{
	"github.com/redis/go-redis/v9",
	"github.com/robfig/cron/v3",
	"github.com/go-co-op/gocron/v2",
	"github.com/go-co-op/gocron-redis-lock/v2",
	"github.com/hibiken/asynq",
}

// describe returns the settings of the run and the machine. Unknown fields are left out.
func describe(ctx context.Context, args []string) figures.Run {
	run := figures.Run{
		When:    time.Now().UTC().Truncate(time.Second),
		Commit:  commit(ctx),
		Command: strings.Join(append([]string{"go run . ticks"}, args...), " "),
		Machine: figures.Machine{
			System:    runtime.GOOS + "/" + runtime.GOARCH,
			Processor: field("/proc/cpuinfo", "model name"),
			Cores:     runtime.NumCPU(),
		},
		Versions: map[string]string{"Go": strings.TrimPrefix(runtime.Version(), "go")},
	}
	kib, _ := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB")) // 0: not known
	run.Machine.MemoryMiB = kib / 1024
	if text := output(ctx, "redis-server", "--version"); text != "" {
		for word := range strings.FieldsSeq(text) {
			if version, ok := strings.CutPrefix(word, "v="); ok {
				run.Versions["Redis"] = version
			}
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(contendersModules, m.Path) {
				run.Versions[m.Path] = m.Version
			}
		}
	}
	return run
}

// commit returns the checked-out commit, with a + when a file differs from it.
func commit(ctx context.Context) string {
	id := output(ctx, "git", "rev-parse", "--short=12", "HEAD")
	if id != "" && output(ctx, "git", "status", "--porcelain", "--untracked-files=no") != "" {
		id += "+"
	}
	return id
}

// output returns the output of a program, or "" when there is no such program.
func output(ctx context.Context, name string, args ...string) string {
	text, _ := exec.CommandContext(ctx, name, args...).Output() //nolint:gosec // G204: both names are written above
	return strings.TrimSpace(string(text))
}

// field is the value of a line "name : value" of a file, or "".
func field(file, name string) string {
	text, _ := os.ReadFile(file) //nolint:gosec // G304: both names are written above
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
