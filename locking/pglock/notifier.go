package pglock

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	// pingAfter is how long the connection may receive nothing before it is pinged. Without an answer for the
	// same time it counts as broken.
	pingAfter = 2 * time.Second

	// reconnectPause is the pause before a broken connection is replaced.
	reconnectPause = 500 * time.Millisecond
)

// errNoWaiters ends a connection without waiters.
var errNoWaiters = errors.New("no waiters")

// notifier receives the notifications for the queued waiters of this process, over one connection,
// which it has while there are waiters and for a few seconds longer. A notification may be lost:
// each waiter also polls.
type notifier struct {
	config  *pgx.ConnConfig // nil: no notifications
	channel string          // unique; "" without config
	logger  *slog.Logger

	mu      sync.Mutex
	waiting map[string]chan struct{} // by owner; capacity 1
	end     context.CancelFunc       // of run; nil when it does not run
	ended   chan struct{}            // closed when run has ended
	warned  time.Time
}

func newNotifier(config *pgx.ConnConfig, namespace string, logger *slog.Logger) *notifier {
	n := &notifier{logger: logger, waiting: make(map[string]chan struct{})}
	if config != nil {
		id := uuid.New()
		n.config, n.channel = config.Copy(), namespace+"_lock_"+hex.EncodeToString(id[:])
	}
	return n
}

// listen implements Driver.Listen.
func (n *notifier) listen(owner string) (<-chan struct{}, func()) {
	notified := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting[owner] = notified
	return notified, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.waiting, owner)
	}
}

// connect starts run, unless it runs. It does not wait for the connection.
func (n *notifier) connect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.config == nil || n.end != nil {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	n.end, n.ended = end, make(chan struct{})
	go n.run(ctx, n.ended)
}

// close implements Driver.Close.
func (n *notifier) close() {
	n.mu.Lock()
	end, ended := n.end, n.ended
	n.mu.Unlock()
	if end != nil {
		end()
		<-ended
	}
}

// run receives notifications while there are waiters, and replaces a broken connection. It ends with ctx.
func (n *notifier) run(ctx context.Context, ended chan struct{}) {
	defer close(ended)
	for {
		err := n.receive(ctx)
		if ctx.Err() == nil && !errors.Is(err, errNoWaiters) {
			n.warn(err)
			pause(ctx, reconnectPause)
		}
		if n.stop(ctx) {
			return
		}
	}
}

// stop reports whether run ends now. The next waiter starts it again.
func (n *notifier) stop(ctx context.Context) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() == nil && len(n.waiting) > 0 {
		return false
	}
	n.end()
	n.end = nil
	return true
}

// receive passes notifications on, until its connection breaks or the last waiter has gone.
func (n *notifier) receive(ctx context.Context) error {
	var conn *pgx.Conn
	err := bounded(ctx, func(ctx context.Context) (err error) {
		conn, err = pgx.ConnectConfig(ctx, n.config)
		return err
	})
	if err != nil {
		return err
	}
	// Of a connection that hangs, pgx still closes the socket in the background, within 15 s.
	defer func() { _ = bounded(ctx, conn.Close) }()
	err = bounded(ctx, func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{n.channel}.Sanitize(), pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err != nil {
		return err
	}
	n.notifyAll() // a notification may have been sent before
	for {
		owner, err := next(ctx, conn)
		if err != nil {
			return err
		}
		if !n.notify(owner) {
			return errNoWaiters
		}
	}
}

// next returns the payload of the next notification, "" when there was none for some seconds.
func next(ctx context.Context, conn *pgx.Conn) (string, error) {
	owner := ""
	err := bounded(ctx, func(ctx context.Context) error {
		got, err := conn.WaitForNotification(ctx)
		if err == nil {
			owner = got.Payload
		}
		return err
	})
	if err == nil || conn.IsClosed() || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return owner, err
	}
	return "", bounded(ctx, conn.Ping)
}

// bounded limits f to pingAfter.
func bounded(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pingAfter)
	defer cancel()
	return f(ctx)
}

// notify notifies one waiter, and reports whether there are any.
func (n *notifier) notify(owner string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	signal(n.waiting[owner])
	return owner != "" || len(n.waiting) > 0
}

// notifyAll notifies all waiters.
func (n *notifier) notifyAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, notified := range n.waiting {
		signal(notified)
	}
}

// signal sends a value unless one is waiting. A nil channel takes none.
func signal(notified chan struct{}) {
	select {
	case notified <- struct{}{}:
	default:
	}
}

// warn logs at most once in ten seconds.
func (n *notifier) warn(err error) {
	n.mu.Lock()
	due := time.Since(n.warned) >= 10*time.Second
	if due {
		n.warned = time.Now()
	}
	n.mu.Unlock()
	if due {
		n.logger.Warn("no notifications for waiting locks; waiters ask once a second", "error", err)
	}
}
