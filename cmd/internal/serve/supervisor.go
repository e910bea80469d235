package serve

import (
	"context"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
)

// Variables in which systemd passes its socket, and how often it expects a sign of life from which
// process.
const (
	notifySocket = "NOTIFY_SOCKET"
	watchdogUsec = "WATCHDOG_USEC"
	watchdogPID  = "WATCHDOG_PID"
)

// startedEvery is how often the supervisor's watch checks whether all nodes have registered.
const startedEvery = 50 * time.Millisecond

// supervisor is a service manager that speaks the protocol of sd_notify: datagrams to a socket. A
// nil one gets nothing.
type supervisor struct {
	socket string
	period time.Duration // of the watchdog, half of what it permits; 0 for none
}

// supervisorOf reads the supervisor's address, nil for none. It removes the variables from the
// environment of this process, so that commands do not get them.
func supervisorOf(env map[string]string) *supervisor {
	for _, name := range []string{notifySocket, watchdogUsec, watchdogPID} {
		_ = os.Unsetenv(name) // fails for malformed names alone
	}
	if env[notifySocket] == "" {
		return nil
	}
	s := &supervisor{socket: env[notifySocket]}
	if pid := env[watchdogPID]; pid == "" || pid == strconv.Itoa(os.Getpid()) {
		usec, _ := strconv.ParseInt(env[watchdogUsec], 10, 64) // a text that is no number means no watchdog
		s.period = max(0, redisconn.Duration(usec, time.Microsecond)/2)
	}
	return s
}

// watched is a node whose state the supervisor gets.
type watched interface {
	node
	Registered() bool
}

// watch notifies the supervisor when all nodes have registered, then that they live, and at the end
// of ctx that they stop. A supervisor that does not listen is logged, and keeps no node from its
// work.
func watch[N watched](ctx context.Context, s *supervisor, log *slog.Logger, nodes []N) error {
	defer func() { <-ctx.Done() }()
	if s == nil {
		return nil
	}
	report := func(state string) {
		if err := s.send(ctx, state); err != nil {
			log.Warn("the supervisor cannot be told how the node is", "socket", s.socket, "state", state, "error", err)
		}
	}
	registered := func() bool { return !slices.ContainsFunc(nodes, func(n N) bool { return !n.Registered() }) }
	if every(ctx, startedEvery, registered); ctx.Err() == nil {
		report("READY=1")
	}
	if ctx.Err() == nil && s.period > 0 {
		every(ctx, s.period, func() bool {
			for _, n := range nodes {
				_ = n.Ready() // that it answers at all counts: a node that hangs is to be restarted, one without Redis is not
			}
			report("WATCHDOG=1")
			return false
		})
	}
	<-ctx.Done()
	report("STOPPING=1")
	return nil
}

// every calls f at once and then once a period, until it returns true or ctx ends.
func every(ctx context.Context, period time.Duration, f func() (done bool)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// send sends one datagram. It waits for a full queue of the supervisor for a second at most.
func (s *supervisor) send(ctx context.Context, state string) error {
	dial := net.Dialer{Timeout: time.Second}
	conn, err := dial.DialContext(context.WithoutCancel(ctx), "unixgram", s.socket) // a name with @ in front is an abstract one
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return err
}
