package redistest

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
)

// embeddedAddr is a name only: nothing listens there. It is an IP literal
// because go-redis resolves host names, and a resolver does not work in a
// second synctest bubble of one process.
const embeddedAddr = "127.0.0.1:6379"

// Embedded is a Redis server inside this process, without a port.
type Embedded struct {
	mini *miniredis.Miniredis
	addr string

	// dialMu guards up, and is held while miniredis is dialled: its Close waits for its connections, and must not get another
	// one. It is not mu, because a dial waits for scripts, and scripts wait for mu.
	dialMu sync.Mutex
	up     bool

	mu    sync.Mutex
	runID string
	began time.Time   // when the server was started, by the true time
	hook  server.Hook // the caller's, called after ours

	clockOff time.Duration // the answer of TIME less the true time
	refusal  string        // the answer to commands that write; "": writes are taken
}

// upBefore is for how long a new embedded server has been up, by INFO. A server that is started again has just been started.
const upBefore = 24 * time.Hour

// Embed starts an embedded server, which has been up for a day. In a synctest bubble, call it inside the
// bubble and Close it there.
func Embed() (*Embedded, error) {
	e := &Embedded{mini: miniredis.NewMiniRedis(), addr: embeddedAddr}
	e.mini.ClockTTL(true)
	if err := e.start(); err != nil {
		return nil, err
	}
	e.SetUptime(upBefore)
	return e, nil
}

// StartEmbedded starts an embedded server for one test, with a client of it, and closes both when the test ends. It may be called in a
// synctest bubble.
func StartEmbedded(tb TB) (*Embedded, *redis.Client) {
	tb.Helper()
	e, err := Embed()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(e.Close)
	o := patientOptions(e.addr)
	o.Dialer = e.Options().Dialer
	c := redis.NewClient(o)
	tb.Cleanup(func() { _ = c.Close() })
	return e, c
}

// Mini returns the miniredis inside, for tests that look at keys or set its
// clock. Do not close it; use Stop and Close.
func (e *Embedded) Mini() *miniredis.Miniredis { return e.mini }

// Addr returns the address that its clients show in messages. Nothing listens
// there.
func (e *Embedded) Addr() string { return e.addr }

// RunID returns the run_id that INFO server answers now, which is its replication id as well.
func (e *Embedded) RunID() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runID
}

// SetRunID makes the server answer another run_id, as after a failover that
// kept the data.
func (e *Embedded) SetRunID(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runID = id
}

// SetUptime sets for how long the server has been up, as INFO server answers.
func (e *Embedded) SetUptime(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.began = time.Now().Add(-d)
}

// SetHook puts a function before every command, also before the commands of scripts; the function
// returns true when it has answered itself. The hook outlives a Restart. nil removes it.
func (e *Embedded) SetHook(h server.Hook) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hook = h
}

// RefuseWrites makes the server answer all commands that write, also in scripts, with an error such
// as "OOM command not allowed when used memory > 'maxmemory'.". An empty text ends the refusal.
func (e *Embedded) RefuseWrites(reply string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusal = reply
}

// Options returns the settings of Client, for tests that wrap the Dialer.
func (e *Embedded) Options() *redis.Options {
	o := ClientOptions(e.addr)
	o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return e.dial(ctx) }
	return o
}

// Client returns a new client of this server. The caller closes it.
func (e *Embedded) Client() *redis.Client { return redis.NewClient(e.Options()) }

// Stop closes all connections and refuses new ones until Restart. The data
// stays.
func (e *Embedded) Stop() {
	e.setUp(false)
	e.mini.Close()
}

// Restart starts a stopped or running server again, with its data and a new
// run_id. Call e.Mini().FlushAll() for a restart without persistence.
func (e *Embedded) Restart() error {
	e.Stop()
	return e.start()
}

// Close ends the server and its goroutines. Close the clients first.
func (e *Embedded) Close() { e.Stop() }

func (e *Embedded) start() error {
	// Close cancels this context for good, and blocking commands look at it.
	e.mini.Ctx, e.mini.CtxCancel = context.WithCancel(context.Background()) //nolint:gosec // G118: miniredis calls it in Close

	// The first Dial makes the server; only then can it be given a hook.
	c, err := e.mini.Dial()
	if err != nil {
		return fmt.Errorf("embedded redis: start: %w", err)
	}
	_ = c.Close() // nothing was sent on it
	e.mini.Server().SetPreHook(e.before)

	e.SetRunID(newRunID())
	e.SetUptime(0)
	e.setUp(true)
	return nil
}

func (e *Embedded) setUp(up bool) {
	e.dialMu.Lock()
	defer e.dialMu.Unlock()
	e.up = up
}

func (e *Embedded) dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: err}
	}
	c, err := e.dialUp()
	if err != nil {
		return nil, err
	}
	return withBuffers(c), nil
}

func (e *Embedded) dialUp() (net.Conn, error) {
	e.dialMu.Lock()
	defer e.dialMu.Unlock()
	if !e.up {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	}
	return e.mini.Dial()
}

// before answers INFO server and INFO replication, which miniredis lacks, and TIME after StepClock. It is called for commands
// of clients and of scripts, with the name in capitals.
func (e *Embedded) before(c *server.Peer, cmd string, args ...string) bool {
	e.mu.Lock()
	runID, hook, off, refusal, began := e.runID, e.hook, e.clockOff, e.refusal, e.began
	e.mu.Unlock()
	if hook != nil && hook(c, cmd, args...) {
		return true
	}
	if refusal != "" && changesKeys(e.mini.Server(), cmd) {
		c.WriteError(refusal)
		return true
	}
	if cmd == "TIME" && off != 0 {
		now := time.Now().Add(off)
		c.WriteLen(2)
		c.WriteBulk(strconv.FormatInt(now.Unix(), 10))
		c.WriteBulk(strconv.Itoa(now.Nanosecond() / 1000))
		return true
	}
	switch {
	case cmd != "INFO" || len(args) != 1:
		return false
	case strings.EqualFold(args[0], "server"):
		up := strconv.FormatInt(int64(time.Since(began)/time.Second), 10)
		c.WriteBulk("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:" + runID + "\r\nuptime_in_seconds:" + up + "\r\n")
	case strings.EqualFold(args[0], "replication"):
		c.WriteBulk("# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_replid:" + runID + "\r\n")
	default:
		return false
	}
	return true
}

// changesKeys reports whether a command changes keys. A script does so by the commands that it calls.
func changesKeys(s *server.Server, cmd string) bool {
	return cmd != "EVAL" && cmd != "EVALSHA" && !slices.Contains(keyless, cmd) && !s.IsReadOnlyCommand(cmd)
}

// newRunID returns 40 hex digits, as Redis does.
func newRunID() string {
	b := make([]byte, 20)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return hex.EncodeToString(b)
}
