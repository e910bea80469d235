package etcdlock

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/escapement/escapement/locking"
)

const (
	defaultPrefix = "escapement"
	maxPrefix     = 256 // bytes
)

// Config holds the settings of a Locker or a Driver. The zero value is useful.
type Config struct {
	// Prefix begins all keys. It separates installations in one cluster. At most 256 bytes of printable
	// UTF-8 without "/lock/". Default "escapement".
	Prefix string

	Margin      time.Duration // see locking.KeeperConfig; default 1 s
	CallTimeout time.Duration // limit of one call of the Locker to etcd; default 1 s
	Logger      *slog.Logger  // see locking.KeeperConfig; also gets failed watches (warn); default slog.Default()
}

// New returns a Locker with its locks in client's cluster. The caller closes the Locker, and then the client.
// Connect makes a client with fitting settings.
func New(client *clientv3.Client, cfg Config) *locking.Locker {
	return locking.New(NewDriver(client, cfg), locking.Config{Margin: cfg.Margin, CallTimeout: cfg.CallTimeout, Logger: cfg.Logger})
}

// Driver is the locking.Driver for one etcd cluster. Most programs use New.
type Driver struct {
	client  *clientv3.Client
	leases  pb.LeaseClient
	prefix  string
	refused error // the fault of the Config: the error of each call

	notifier   *notifier
	cleaner    *cleaner
	tombstones tombstones

	mu     sync.Mutex
	offset offset
}

// offset is the offset key as it was last read. 0, 0: there is no such key, or it was not read.
type offset struct {
	value int64
	mod   int64 // the key's revision
}

var (
	_ locking.Driver   = (*Driver)(nil)
	_ locking.Notifier = (*Driver)(nil)
)

// NewDriver returns a driver without a Locker. Margin and CallTimeout of cfg are not used. The caller calls
// Close and then Wait; a Locker's Close does both.
func NewDriver(client *clientv3.Client, cfg Config) *Driver {
	if cfg.Prefix == "" {
		cfg.Prefix = defaultPrefix
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	d := &Driver{client: client, leases: clientv3.RetryLeaseClient(client), prefix: cfg.Prefix, refused: cfg.check()}
	d.notifier = newNotifier(client, cfg.Logger)
	d.cleaner = newCleaner(d.leases)
	d.tombstones.turn = make(chan struct{}, 1)
	return d
}

func (c Config) check() error {
	var why string
	switch {
	case len(c.Prefix) > maxPrefix:
		why = fmt.Sprintf("has %d bytes; use at most %d", len(c.Prefix), maxPrefix)
	case !utf8.ValidString(c.Prefix) || strings.ContainsFunc(c.Prefix, unicode.IsControl):
		why = "is not printable UTF-8"
	case strings.Contains(c.Prefix+"/", keyInfix):
		why = fmt.Sprintf("contains %q, which begins the names of locks; the ranges of two prefixes could overlap", keyInfix)
	default:
		return nil
	}
	return &locking.InputError{Field: "Config.Prefix", Why: why}
}

// Wait waits for the clean-up that releases have left in the background: a second at most.
func (d *Driver) Wait() { d.cleaner.wait() }

// knownOffset returns the offset as it was last read.
func (d *Driver) knownOffset() offset {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.offset
}

func (d *Driver) learnOffset(o offset) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.mod >= d.offset.mod || o.mod == 0 { // 0: the key was deleted
		d.offset = o
	}
}
