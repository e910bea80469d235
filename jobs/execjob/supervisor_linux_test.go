package execjob

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// killedNode starts a process with one run, waits for the events "child" and "grandchild" with their process ids, and kills the
// process. It fails the test unless both are gone.
func killedNode(t *testing.T, f *fifo, script string) {
	t.Helper()
	node := exec.Command(os.Args[0])
	node.Env = append(os.Environ(), asNode+"="+script, "F="+f.path)
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	pids := []int{f.next(t, "child"), f.next(t, "grandchild")}
	for _, pid := range pids {
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		if gone(t, pid) {
			t.Fatal("it is not there to begin with")
		}
	}
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed, deadline := time.Now(), time.After(standstill)
	_ = node.Wait() // it was killed
	for _, pid := range pids {
		for !gone(t, pid) {
			select {
			case <-deadline:
				t.Fatal("the command, or what it started, outlives its node")
			case <-time.After(time.Millisecond):
			}
		}
	}
	t.Logf("gone after %s", time.Since(killed))
}

// A node is killed outright. Its command is gone with all its processes, also with a process that
// ignores SIGTERM.
func TestCommandsDieWithTheirNode(t *testing.T) {
	t.Parallel()
	killedNode(t, newFifo(t), `echo "child $$" >$F; sh -c 'sleep 600 & echo "grandchild $!" >$F; wait' & wait`)
	killedNode(t, newFifo(t), `trap '' TERM; echo "child $$" >$F; sleep 600 & echo "grandchild $!" >$F; while :; do wait; sleep 0.1; done`)
}
