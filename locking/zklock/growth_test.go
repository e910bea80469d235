//go:build unix

package zklock_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/zklock"
)

// metric returns one of the numbers of a server's command mntr.
func (z *zooServer) metric(tb testing.TB, name string) int {
	tb.Helper()
	_, after, _ := strings.Cut(z.ask("mntr"), "\n"+name+"\t")
	line, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestNothingGrows acquires 5,000 locks twice each, with the second owner waiting for the first,
// and looks at what stays behind.
func TestNothingGrows(t *testing.T) {
	const workers, names = 8, 5000
	z := startServer(t, fast)
	c, _ := connect(t, []string{z.addr()})
	d := zklock.NewDriver(c, zklock.Config{})
	l := locking.New(d, locking.Config{})
	defer l.Close()
	hold := func(name string) {
		lease, err := l.Acquire(t.Context(), name, locking.Options{Wait: time.Minute})
		if err == nil {
			err = lease.Release(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
	}
	work := func(prefix string, names int) {
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				for i := range names / workers {
					name := fmt.Sprint(prefix, w, "/", i)
					var both sync.WaitGroup
					both.Go(func() { hold(name) })
					hold(name)
					both.Wait()
				}
			})
		}
		all.Wait()
	}
	counts := func() map[string]int {
		return map[string]int{
			"goroutines":  runtime.NumGoroutine(),
			"connections": z.metric(t, "zk_num_alive_connections"),
			"ephemerals":  z.metric(t, "zk_ephemerals_count"),
			"watches":     z.metric(t, "zk_watch_count"),
			"nodes":       z.metric(t, "zk_znode_count"),
			"remembered":  d.Remembered(),
		}
	}
	work("warm", 80)
	await(t, "the nodes of the first locks are removed", func() bool { return z.metric(t, "zk_znode_count") < 15 })
	before := counts()
	start := time.Now()
	work("a", names)
	t.Logf("%d acquisitions took %s", 2*names, time.Since(start))
	await(t, "the nodes of the locks are removed", func() bool {
		return z.metric(t, "zk_znode_count") <= before["nodes"] && runtime.NumGoroutine() <= before["goroutines"]+5
	})
	after := counts()
	t.Logf("before %v, after %v", before, after)
	for what, n := range after {
		if n > before[what]+5 {
			t.Errorf("%s: %d before, %d after", what, before[what], n)
		}
	}
}
