package cli

import (
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
)

// completed returns a shell's offers for the last of some words, without descriptions.
func completed(t *testing.T, env []string, args ...string) (all []string) {
	t.Helper()
	code, stdout, _ := cmdtest.Call(env, "", append([]string{"__complete"}, args...)...)
	if code != command.ExitDone {
		t.Errorf("complete %q: exit %d", args, code)
	}
	for line := range strings.Lines(stdout) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !strings.HasPrefix(word, ":") { // the last line, for the shell
			all = append(all, word)
		}
	}
	return all
}

// TestCompletion completes commands, flags' words and names in Redis; without an answer of Redis it
// offers nothing, soon.
func TestCompletion(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "report", Schedule: "@yearly"}, jobs.Job{Name: "reload", Schedule: "@yearly"}, jobs.Job{Name: "other", Schedule: "@yearly"})
	run := p.Granted(jobs.Job{Name: "report", Schedule: "@yearly"}, "{}")
	for _, tt := range []struct {
		args string
		want string
	}{
		{"jobs get re", "reload report"},
		{"jobs get report ", ""},
		{"jobs delete o", "other"},
		{"jobs export o", "other"},
		{"runs get ", run},
		{"runs list --job o", "other"},
		{"runs list --outcome s", "succeeded skipped superseded"},
		{"jobs list -o ", "table wide json"},
		{"completion p", "powershell"},
		{"nodes drain ", ""},
	} {
		args := strings.Split(tt.args, " ")
		if got := completed(t, p.Env, args...); strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.args, got, tt.want)
		}
	}
	if got := completed(t, p.Env, "doc"); !slices.Equal(got, []string{"doctor"}) {
		t.Errorf("got %q", got)
	}
	for _, env := range [][]string{
		{"ESCAPEMENT_REDIS_URL=redis://" + cmdtest.ClosedPort(t)}, {"ESCAPEMENT_API=http://" + cmdtest.ClosedPort(t)}, {"ESCAPEMENT_REDIS_URL=redis://" + silentPort(t)}, {"ESCAPEMENT_REDIS_URL=nonsense"},
	} {
		if got := completed(t, env, "jobs", "get", ""); len(got) > 0 {
			t.Errorf("%s: %q", env, got)
		}
	}
}

// TestCompletionScripts: there is one for each shell, and bash can read its own.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range command.ShellNames {
		code, stdout, stderr := cmdtest.Call(nil, "", "completion", shell)
		if code != command.ExitDone || !strings.Contains(stdout, "__complete") || stderr != "" {
			t.Errorf("%s: exit %d, %d bytes, %s", shell, code, len(stdout), stderr)
		}
		if path, err := exec.LookPath("bash"); shell == "bash" && err == nil {
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(stdout)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("bash: %v %s", err, out)
			}
		}
	}
}

// silentPort is the address of a server that listens and sends nothing.
func silentPort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
