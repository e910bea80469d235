package zklock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/escapement/escapement/locking"
)

// defaultRoot is the root of a Config without one.
const defaultRoot = "/escapement/locks"

// Config holds the settings of a Locker or a Driver. The zero value is useful.
type Config struct {
	Root        string        // the node with all locks, which is created; separates installations; default "/escapement/locks"
	Margin      time.Duration // see locking.KeeperConfig; default 1 s
	CallTimeout time.Duration // limit of one call; default 1 s
	Logger      *slog.Logger  // see locking.KeeperConfig; default slog.Default()
}

// New returns a Locker with its locks in the client's ZooKeeper. The caller closes the Locker, and then the client.
// With a Config that has a wrong Root, each call returns an *locking.InputError.
func New(client *Client, cfg Config) *locking.Locker {
	return locking.New(NewDriver(client, cfg), locking.Config{Margin: cfg.Margin, CallTimeout: cfg.CallTimeout, Logger: cfg.Logger})
}

// Driver is the locking.Driver for one ZooKeeper ensemble. Most programs use New.
type Driver struct {
	client  *Client
	root    string
	refused error // the fault of the Config: the error of each call

	tokens   tokens
	leases   leases
	released recent
	waiting  waiting
}

var (
	_ locking.Driver   = (*Driver)(nil)
	_ locking.Notifier = (*Driver)(nil)
)

// NewDriver returns a driver without a Locker. Of cfg it uses Root.
func NewDriver(client *Client, cfg Config) *Driver {
	d := &Driver{client: client, root: cfg.Root}
	if d.root == "" {
		d.root = defaultRoot
	}
	d.tokens.root = d.root
	d.refused = errors.Join(client.refused, checkRoot(d.root))
	return d
}

func checkRoot(root string) error {
	bad := !strings.HasPrefix(root, "/")
	for element := range strings.SplitSeq(root[min(1, len(root)):], "/") {
		bad = bad || element == "" || element == "." || element == ".." || element == "zookeeper" || strings.ContainsFunc(element, func(r rune) bool { return r <= ' ' || r > '~' })
	}
	if bad {
		return &locking.InputError{Field: "Config.Root", Why: fmt.Sprintf("is %q; use a path as /team/locks, of printable ASCII", root)}
	}
	return nil
}

// session returns the session for leases that last d.
func (d *Driver) session(lasts time.Duration) (*session, error) {
	if d.refused != nil {
		return nil, d.refused
	}
	return d.client.session(lasts)
}

// readView reads the children of a lock's node. With latest, they are up to date; else the client's
// server may not have the latest changes.
func (d *Driver) readView(ctx context.Context, s *session, name string, latest bool) (view, error) {
	path := d.lockPath(name)
	if latest {
		if _, err := call(ctx, s, "sync", func(c *zk.Conn) (string, error) { return c.Sync(path) }); err != nil {
			return view{}, err
		}
	}
	type children struct {
		names []string
		stat  *zk.Stat
	}
	got, err := call(ctx, s, "read lock", func(c *zk.Conn) (children, error) {
		names, stat, err := c.Children(path)
		return children{names, stat}, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return view{}, nil
	case err != nil:
		return view{}, err
	}
	return readView(got.names, got.stat), nil
}

// node is the data of a node.
type node struct {
	data []byte
	stat *zk.Stat
}

func get(ctx context.Context, s *session, path string) (node, error) {
	return call(ctx, s, "read", func(c *zk.Conn) (node, error) {
		data, stat, err := c.Get(path)
		return node{data, stat}, err
	})
}

func set(ctx context.Context, s *session, path string, data []byte, version int32) (*zk.Stat, error) {
	return call(ctx, s, "write", func(c *zk.Conn) (*zk.Stat, error) { return c.Set(path, data, version) })
}

func remove(ctx context.Context, s *session, path string) error {
	_, err := call(ctx, s, "delete", func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
	return err
}

func create(ctx context.Context, s *session, path string, data []byte, flags int32) error {
	_, err := call(ctx, s, "create", func(c *zk.Conn) (string, error) { return c.Create(path, data, flags, s.client.acl()) })
	return err
}

// changed reports that ZooKeeper refused a request because something is not as it was read.
func changed(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion)
}

// repeats is how often a request is repeated when its connection is lost, within its context.
const repeats = 3

// repeated reports whether to repeat a request that was answered err.
func repeated(ctx context.Context, try int, err error) bool {
	return try < repeats && errors.Is(err, locking.ErrUnreachable) && ctx.Err() == nil
}

// key identifies an acquisition in a driver's memory.
type key struct{ name, owner string }

// recent keeps the last owners that were released, 2,000 at least.
type recent struct {
	mu       sync.Mutex
	new, old map[key]bool
}

const recentSize = 2000

func (r *recent) add(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.new == nil || len(r.new) >= recentSize {
		r.old, r.new = r.new, make(map[key]bool)
	}
	r.new[k] = true
}

func (r *recent) has(k key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.new[k] || r.old[k]
}

func (r *recent) remove(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.new, k)
	delete(r.old, k)
}
