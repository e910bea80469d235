package execjob

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A node stands still while its command runs. The command is gone with all its processes before its
// lease can be another's, and so is a command that ignores SIGTERM.
func TestCommandsOfAStandingNodeEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		margin time.Duration
	}{
		"that ends when told": {`echo "child $$" >$F; sh -c 'sleep 600 & echo "grandchild $!" >$F; wait' & while :; do echo >>$F.steps; sleep 0.01; done`, time.Minute},
		"that does not":       {`trap '' TERM; echo "child $$" >$F; sleep 600 & echo "grandchild $!" >$F; while :; do echo >>$F.steps; sleep 0.01; done`, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFifo(t)
			node := exec.Command(os.Args[0])
			node.Env = append(os.Environ(), asNode+"="+tt.script, asLease+"="+tt.margin.String(), "F="+f.path)
			if err := node.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = node.Process.Kill(); _ = node.Wait() })
			pids := []int{f.next(t, "child"), f.next(t, "grandchild")}
			if err := node.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			stopped := time.Now()
			deadline := time.After(standstill)
			for _, pid := range pids {
				t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
				for !gone(t, pid) {
					select {
					case <-deadline:
						t.Fatal("the command, or what it started, outlives its lease")
					case <-time.After(time.Millisecond):
					}
				}
			}
			steps, err := os.Stat(filepath.Join(filepath.Dir(f.path), "events.steps"))
			if err != nil {
				t.Fatal(err)
			}
			end := stopped.Add(leaseLasts) // it was renewed before
			t.Logf("the last step was %s after the lease had ended for its holder", steps.ModTime().Sub(end))
			if tt.margin == time.Minute && steps.ModTime().After(end.Add(tt.margin)) {
				t.Error("a step beside the next holder of the lease")
			}
			if stateOf(t, node.Process.Pid) != 'T' {
				t.Error("the node does not stand still")
			}
		})
	}
}
