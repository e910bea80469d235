//go:build !race

package scheduler_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// A tick costs at most two script calls, whatever the number of nodes. The server's commandstats count all calls; what
// the same nodes do when nothing is due is counted first and taken off: of scripts that is the roster's, which are
// counted at the clients, and hardly any others. A tick that is late by more than the grace is anyone's, and may be asked for twice:
// on a machine so busy that this happens, the measurement is made again.
//
// What one node has due in one partition goes in one call, so that few nodes need fewer calls than many. A call of
// a claim and one of a settle for each such bundle is what is left when that is taken out, and there the nodes'
// number must not show.
func TestScriptCallsPerTick(t *testing.T) {
	var table strings.Builder
	var alone float64
	for _, nodes := range []int{1, 5, 20} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			u := scriptCalls(t, nodes)
			for try := 1; u.late > 0 && try < 4; try++ {
				t.Logf("%d of %d ticks were late: measured again", u.late, u.ticks)
				u = scriptCalls(t, nodes)
			}
			perTick, perBundle := float64(u.scripts)/float64(u.ticks), float64(u.scripts)/float64(u.bundles)
			if nodes == 1 {
				alone = perBundle
			}
			fmt.Fprintf(&table, "| %d | %d | %.2f | %.2f | %.1f | %.0f |\n", nodes, u.ticks, perTick, perBundle, float64(u.commands)/float64(u.ticks), u.idle)
			if u.ticks < 20*3 || u.beats < int64(3*nodes) {
				t.Errorf("%d ticks and %d beats: too few to measure", u.ticks, u.beats)
			}
			if perTick > 2 {
				t.Errorf("%.2f script calls a tick, want at most 2", perTick)
			}
			if perBundle > 1.1*alone {
				t.Errorf("%.2f script calls for what one node has due in one partition, and %.2f with one node: more than a tenth above it", perBundle, alone)
			}
		})
	}
	t.Logf("\n| nodes | ticks | script calls a tick | for each node and partition with something due | commands a tick | commands a second without a tick |\n%s", &table)
}

// usage is what ticks cost, with what the nodes do anyway taken off.
type usage struct {
	scripts, commands    int64
	ticks, bundles, late int64
	beats, others        int64   // script calls of the roster; and those of the nodes that nothing due asked for
	idle                 float64 // commands a second when nothing is due
}

// beatCounter counts a client's calls of the roster's scripts.
type beatCounter struct{ calls atomic.Int64 }

func (b *beatCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *beatCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); strings.HasPrefix(cmd.Name(), "eval") && len(args) > 3 && strings.HasSuffix(fmt.Sprint(args[3]), ":roster") {
			b.calls.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (b *beatCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// count is what a server and its nodes have counted so far.
type count struct {
	scripts, commands, beats int64
	at                       time.Time
}

func (b *beatCounter) count(t *testing.T, client *redis.Client) count {
	t.Helper()
	scripts, all := commandstats(t, client)
	return count{scripts, all, b.calls.Load(), time.Now()}
}

// scriptCalls runs 20 jobs that have nothing due for five seconds and then tick for five, and counts in both,
// from the middle of one second to the middle of another, so that no tick is cut in two.
func scriptCalls(t *testing.T, nodes int) usage {
	t.Helper()
	server := redistest.Start(t)
	var beats beatCounter
	c := &cluster{t: t, logs: &logs{}, client: func() *redis.Client {
		client := redis.NewClient(redistest.ClientOptions(server.Addr()))
		client.AddHook(&beats)
		return client
	}}
	const joining, idle, due = 7, 5, 5 // seconds; the first ticks come amid the joining, so that the server knows the scripts
	s, client := &sink{}, server.Client(t)
	<-time.After(untilHalf(t, client))
	began := time.Now()
	list := dueIn([]int{joining - 2, joining + idle + 1, joining + idle + 2, joining + idle + 3, joining + idle + 4, joining + idle + due}, s)
	for i := range nodes {
		c.start(fmt.Sprintf("n%02d", i), scheduler.Config{}, list...)
	}
	for _, n := range c.nodes {
		for n.Ready() != nil {
			<-time.After(10 * time.Millisecond)
		}
	}
	<-time.After(time.Until(began.Add(joining * time.Second))) // joining is over
	one, early := beats.count(t, client), len(s.all())
	<-time.After(time.Until(began.Add((joining + idle) * time.Second)))
	two := beats.count(t, client)
	if n := len(s.all()); n > early || early == 0 {
		t.Errorf("%d ticks ran while the nodes joined, and %d while nothing was due: the nodes joined too slowly", early, n-early)
	}
	<-time.After(time.Until(began.Add((joining + idle + due) * time.Second)))
	three := beats.count(t, client)
	c.end()
	s.check(t)
	u := usageOf(s.all()[early:])
	u.beats, u.idle = three.beats-two.beats, float64(two.commands-one.commands)/two.at.Sub(one.at).Seconds()
	u.others = two.scripts - one.scripts - (two.beats - one.beats)
	u.scripts = three.scripts - two.scripts - u.beats - u.others
	u.commands = three.commands - two.commands - int64(u.idle*three.at.Sub(two.at).Seconds())
	return u
}

// dueIn are 20 jobs that tick in the seconds that are so far away.
func dueIn(seconds []int, s *sink) []jobs.Job {
	var at []string
	for _, away := range seconds {
		at = append(at, strconv.Itoa((time.Now().Second()+away)%60))
	}
	var list []jobs.Job
	for i := range 20 {
		j := eachSecond(fmt.Sprintf("job-%d", i), s)
		j.Schedule = strings.Join(at, ",") + " * * * * *"
		list = append(list, j)
	}
	return list
}

// usageOf counts ticks, those that were late, and how often one node had something due in one partition.
func usageOf(runs []sunk) usage {
	var u usage
	bundles := make(map[string]bool)
	for _, r := range runs {
		u.ticks++
		bundles[fmt.Sprint(r.tick, r.node, ledger.Partition(r.job, 16))] = true
		if r.at.Sub(r.tick) > 400*time.Millisecond {
			u.late++
		}
	}
	u.bundles = int64(len(bundles))
	return u
}

// untilHalf is the time until the server's clock is next in the middle of a second.
func untilHalf(t *testing.T, client *redis.Client) time.Duration {
	t.Helper()
	now, err := client.Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now.Truncate(time.Second).Add(1500 * time.Millisecond).Sub(now)
}

var calls = regexp.MustCompile(`cmdstat_([^:]+):calls=(\d+)`)

// commandstats are how many scripts the server was asked for, and how many commands it has carried out, those inside
// scripts included.
func commandstats(t *testing.T, client *redis.Client) (scripts, all int64) {
	t.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range calls.FindAllStringSubmatch(info, -1) {
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all += n
		if m[1] == "eval" || m[1] == "evalsha" {
			scripts += n
		}
	}
	return scripts, all
}
