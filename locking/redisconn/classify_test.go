package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// answer is an error reply of a server, as go-redis types it.
type answer string

func (a answer) Error() string { return string(a) }
func (a answer) RedisError()   {}

func TestClassify(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	tests := []struct {
		err         error
		unreachable bool
	}{
		{io.EOF, true},
		{io.ErrUnexpectedEOF, true},
		{io.ErrClosedPipe, true},
		{net.ErrClosed, true},
		{dial, true},
		{fmt.Errorf("wrapped: %w", dial), true},
		{&net.DNSError{Err: "no such host", Name: "redis"}, true},
		{syscall.ECONNRESET, true},
		{os.ErrDeadlineExceeded, true},
		{context.DeadlineExceeded, true},
		{redis.ErrPoolTimeout, true},
		{redis.ErrPoolExhausted, true},
		{fmt.Errorf("%w: pipeline push drain: %w", errors.New("redis: connection unusable (reply stream desynchronized)"), io.EOF), true},
		{fmt.Errorf("redis: all sentinels are unreachable: %w", errors.Join(redis.Nil, dial)), true}, // one sentinel has no master's address yet
		{fmt.Errorf("redis: all sentinels are unreachable: %w", errors.Join(dial, answer("NOAUTH Authentication required."))), true},
		{answer("LOADING Redis is loading the dataset in memory"), true},
		{answer("READONLY You can't write against a read only replica."), true},
		{answer("ERR Error running script: @user_script:9: -READONLY You can't write against a read only replica."), true},
		{answer("ERR user_script:255: NOREPLICAS Not enough good replicas to write. script: 2788, on @user_script:255."), true},
		{answer("MASTERDOWN Link with MASTER is down"), true},
		{answer("CLUSTERDOWN The cluster is down"), true},
		{answer("TRYAGAIN Multiple keys request during rehashing of slot"), true},
		{answer("NOREPLICAS Not enough good replicas to write."), true},
		{answer("BUSY Redis is busy running a script."), true},
		{answer("MOVED 3999 127.0.0.1:6381"), true},
		{answer("ERR max number of clients reached"), true},
		{answer("ERR max number of clients + cluster connections reached"), true},

		{context.Canceled, false},
		{redis.Nil, false},
		{fmt.Errorf("redis: all sentinels are unreachable: %w", errors.Join(redis.Nil, redis.Nil)), false},
		{redis.ErrClosed, false},
		{errors.New("something else"), false},
		{answer("WRONGTYPE Operation against a key holding the wrong kind of value"), false},
		{answer("NOAUTH Authentication required."), false},
		{answer("ERR unknown command 'READONLY x'"), false},
		{answer("OOM command not allowed when used memory > 'maxmemory'."), false},
	}
	for _, tt := range tests {
		got := redisconn.Classify("claim", tt.err)
		if errors.Is(got, locking.ErrUnreachable) != tt.unreachable || !errors.Is(got, tt.err) {
			t.Errorf("Classify(%q) = %v; want unreachable %t and the error inside", tt.err, got, tt.unreachable)
		}
		if !strings.HasPrefix(got.Error(), "claim: ") {
			t.Errorf("Classify(%q) = %v; want it to begin with what was being done", tt.err, got)
		}
		if twice := redisconn.Classify("sweep", got); strings.Count(twice.Error(), locking.ErrUnreachable.Error()) > 1 {
			t.Errorf("explained twice: %v", twice)
		}
	}
	if err := redisconn.Classify("claim", nil); err != nil {
		t.Errorf("Explain(nil) = %v", err)
	}
}

// Full recognizes the replies of a server that takes no more writes, OfSlot the replies about one
// slot.
func TestFullAndOfSlot(t *testing.T) {
	const full, ofSlot = 1, 2
	for text, want := range map[string]int{
		"OOM command not allowed when used memory > 'maxmemory'.":                                                     full,
		"ERR user_script:9: OOM command not allowed when used memory > 'maxmemory'. script: 2788, on @user_script:9.": full,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.":            full,
		"NOREPLICAS Not enough good replicas to write.":                                                               0,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                           0,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                                     ofSlot,
		"MOVED 3999 127.0.0.1:6381":                      ofSlot,
		"ASK 3999 127.0.0.1:6381":                        ofSlot,
		"CLUSTERDOWN Hash slot not served":               ofSlot,
		"CLUSTERDOWN The cluster is down":                0,
		"LOADING Redis is loading the dataset in memory": 0,
	} {
		err := redisconn.Classify("claim", answer(text))
		if redisconn.Full(err) != (want == full) || redisconn.OfSlot(err) != (want == ofSlot) {
			t.Errorf("%q: full %t, of a slot %t", text, redisconn.Full(err), redisconn.OfSlot(err))
		}
	}
	if redisconn.Full(nil) || redisconn.Full(errors.New("OOM in a file name")) {
		t.Error("what no server said is a full one")
	}
}

// A Sentinel without the master's address answers nil, which is no answer while another is
// unreachable.
func TestClassifySentinels(t *testing.T) {
	knowsNothing := redistest.Start(t) // answers, and names no master
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	for addrs, want := range map[[2]string]bool{
		{knowsNothing.Addr(), away.Addr().String()}: true,
		{knowsNothing.Addr(), knowsNothing.Addr()}:  false,
	} {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: addrs[:], MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
		err := redisconn.Classify("ping", c.Ping(t.Context()).Err())
		if errors.Is(err, locking.ErrUnreachable) != want {
			t.Errorf("%v; want unreachable %t", err, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
