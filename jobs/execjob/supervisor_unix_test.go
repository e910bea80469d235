//go:build unix

package execjob

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// victim is a command that only a supervisor ends.
type victim struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

func newVictim(t *testing.T, mark string) *victim {
	t.Helper()
	v := &victim{exec.Command("sleep", "600"), make(chan struct{})}
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	v.cmd.Env = append(os.Environ(), groupVariable+"="+mark)
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = v.cmd.Wait(); close(v.ended) }()
	t.Cleanup(func() { _ = syscall.Kill(v.cmd.Process.Pid, syscall.SIGKILL); <-v.ended })
	return v
}

func (v *victim) group() string { return strconv.Itoa(v.cmd.Process.Pid) }

// await waits until the victim has been ended.
func (v *victim) await(t *testing.T, what string) {
	t.Helper()
	select {
	case <-v.ended:
	case <-time.After(standstill):
		t.Fatal(what + ": the command lives")
	}
}

// standstill bounds every wait for an expected event.
const standstill = time.Minute

// A supervisor ends the group when its node is gone, and when the time is over; a renewal keeps the
// group alive. Every shell does that with its own script, and with the script that any shell can
// run.
func TestSupervisorScripts(t *testing.T) {
	t.Parallel()
	for _, path := range append(shells, "/usr/bin/dash", "/bin/ksh", "/bin/zsh") {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue // any Unix has one of them, and Debian two kinds
		}
		scripts := map[string]string{"slept": watchSlept}
		if timed, err := readsTimed(path); err != nil {
			t.Fatal(err)
		} else if timed {
			scripts["timed"] = watchTimed
		}
		for name, script := range scripts {
			t.Run(path+" "+name, func(t *testing.T) {
				t.Parallel()
				superviseVictims(t, path, script)
			})
		}
	}
}

func superviseVictims(t *testing.T, path, script string) {
	t.Helper()
	supervise := func(mark string) *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		shell := exec.Command(path, "-c", script, "escapement", "0.1", mark)
		shell.Stdin, shell.Env = r, []string{"PATH=" + os.Getenv("PATH")}
		shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := shell.Start(); err != nil {
			t.Fatal(err)
		}
		r.Close()
		t.Cleanup(func() {
			w.Close()
			_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
			_ = shell.Wait()
		})
		return w
	}
	send := func(w *os.File, lines ...string) {
		if _, err := w.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	mark := newMark()
	forEver, orphan := newVictim(t, ""), newVictim(t, mark)
	node := supervise(newMark())
	send(node, "-", forEver.group())
	renewal := func(first time.Duration) (kept bool) {
		renewed, lapsed := newVictim(t, ""), newVictim(t, "")
		lines := supervise(newMark())
		send(lines, "- "+seconds(first), renewed.group()+" "+seconds(first), renewed.group()+" 600.000")
		later := seconds(first + first/4)
		send(supervise(newMark()), "- "+later, lapsed.group()+" "+later)
		lapsed.await(t, "the time is over")
		select { // the time of the first lines was over before
		case <-renewed.ended:
			return false
		default:
		}
		lines.Close()
		renewed.await(t, "the node is gone, before the lease is over")
		return true
	}
	if !renewal(2*time.Second) && !renewal(standstill/3) { // a busy machine may run a shell too late to get a renewal
		t.Error("a renewed command was ended")
	}
	select {
	case <-forEver.ended:
		t.Error("a command without a lease was ended")
	default:
	}
	node.Close()
	forEver.await(t, "the node is gone")
	if _, err := os.Stat("/proc/self/environ"); err == nil {
		w := supervise(mark)
		send(w, "- 600.000")
		w.Close()
		orphan.await(t, "the node is gone in the moment of the start")
	}
}

// findShell looks once, and returns a shell that exists.
func TestFindShell(t *testing.T) {
	t.Parallel()
	found, err := findShell()
	if err != nil || found.path == "" {
		t.Fatalf("%+v, %v", found, err)
	}
	again, err := findShell()
	if err != nil || again != found {
		t.Errorf("%+v, %v", again, err)
	}
}

// lease ends at an instant.
type lease struct {
	ends   func() time.Time
	margin time.Duration
}

func (l lease) Left() time.Duration   { return time.Until(l.ends()) }
func (l lease) Margin() time.Duration { return l.margin }

// Each renewal reaches the supervisor before the time of the last line is over, with a line or two
// for each; and the end of the lease reaches it.
func TestRenewalsReachTheSupervisor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		const ttl, every, renewals = 14 * time.Second, 5 * time.Second, 10
		began := time.Now()
		s := &supervisor{pipe: w, stop: make(chan struct{}), lease: lease{func() time.Time {
			renewed := min(time.Since(began), renewals*every).Truncate(every)
			return began.Add(renewed + ttl)
		}, time.Second}}
		s.watch(7)
		s.feeding.Wait() // until the lease is over
		if took, want := time.Since(began), renewals*every+ttl; took < want-feedFloor || took > want+feedFloor {
			t.Errorf("it was fed for %s, and the lease was there for %s", took, want)
		}
		w.Close()
		text := make([]byte, 4096)
		n, err := r.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text[:n])), "\n")
		if lines[0] != "7 14.000" || lines[len(lines)-1] != "7 0.001" || len(lines) < renewals || len(lines) > 2*renewals+2 {
			t.Fatalf("%d lines: %q", len(lines), lines)
		}
		for _, line := range lines[1 : len(lines)-1] {
			if left, err := strconv.ParseFloat(strings.TrimPrefix(line, "7 "), 64); err != nil || left < 8 {
				t.Errorf("%q: the supervisor hears of a renewal when the time is nearly over", line)
			}
		}
	})
}

// A supervisor that reads nothing holds up no sender, however many lines it gets.
func TestStoppedSupervisorHoldsUpNobody(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	s, told := &supervisor{pipe: w}, make(chan struct{})
	go func() {
		defer close(told)
		for range 20_000 { // a pipe has room for some thousands
			s.send("7", time.Second)
		}
	}()
	select {
	case <-told:
	case <-time.After(standstill):
		t.Fatal("it waits for its supervisor")
	}
}

// SIGKILL is due at the deadline, and sooner when the lease is over: half a second later, or half
// of the margin.
func TestKillDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name         string
			left, margin time.Duration // of a lease; no margin: none
			grace, want  time.Duration
		}{
			{"no lease", 0, 0, 5 * time.Second, 5 * time.Second},
			{"a lease", time.Hour, time.Second, 5 * time.Second, 5 * time.Second},
			{"a lease that is over", 0, 10 * time.Second, 5 * time.Second, 500 * time.Millisecond},
			{"a small margin", 0, 200 * time.Millisecond, 5 * time.Second, 100 * time.Millisecond},
			{"a lease that will be over", time.Second, time.Second, 5 * time.Second, 1500 * time.Millisecond},
			{"a lease that was over long ago", -time.Minute, time.Second, 5 * time.Second, 0},
			{"a lease that is longer", 5 * time.Second, time.Second, 3 * time.Second, 3 * time.Second},
		} {
			began := time.Now()
			g := &Group{}
			if tt.margin > 0 {
				ends := began.Add(tt.left)
				g.EndWith(lease{func() time.Time { return ends }, tt.margin})
			}
			for !g.killDue(began.Add(tt.grace)) {
				time.Sleep(time.Millisecond)
			}
			if took := time.Since(began); took.Round(10*time.Millisecond) != tt.want {
				t.Errorf("%s: SIGKILL after %s, want %s", tt.name, took, tt.want)
			}
		}
	})
}
