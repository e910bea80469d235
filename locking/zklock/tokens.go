package zklock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/escapement/escapement/locking"
)

// maxAhead is how far a Request.After may lie above the last token: a guard may have seen a token
// below the limit; a larger one must be a mistake.
const maxAhead = 3_600_000_000

// A token is base + czxid of the holder's node.
//
// ZooKeeper numbers all changes of an ensemble: an epoch, which each new leader increments, in the
// upper 32 bits, and a counter. The czxid is the number of the change that created a node. The base
// is stored once for all locks of a root: the time in µs at which ZooKeeper created the node
// tokens-ID, plus the number in the node's data, which is 0 until a Request.After needs more. ID is
// a random id in the data of the root.
//
// Tokens increase. Each grant is one transaction, which also checks that the root and the tokens node have the versions
// with which the base was read. So a token is the sum of two numbers at one place of ZooKeeper's order of changes: the
// number of the change, which increases, and the base as it is there, which never decreases, because its data is only
// raised, by compare-and-set. A root that was deleted gets a new ID, and so a tokens node of a later time.
//
// No clock is trusted while ZooKeeper keeps its data. When it has lost all data and its numbers start again, the new
// base is larger than the tokens before by the time that has passed, unless there were more than one election or 4.3e9
// changes in each 72 minutes, or the leader's clock was put back; then Request.After helps. It also is in the units of
// redislock's tokens, so a lock that moves from there to ZooKeeper keeps increasing.
//
// A token is below 2^53 until the year 2200 and 300,000 elections. Beyond, no lock is granted.
type base struct {
	value       int64
	rootVersion int32
	path        string // of the tokens node
	version     int32
	changedAt   int64 // zxid of the last change of the tokens node
}

// tokens reads the base, and keeps it until a grant finds that it has changed.
type tokens struct {
	root string
	mu   sync.Mutex
	last *base
}

func (t *tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = nil
}

// get returns the base, raised if a token above after needs that.
func (t *tokens) get(ctx context.Context, s *session, after locking.Token) (base, error) {
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	if last == nil {
		b, err := t.read(ctx, s)
		if err != nil {
			return base{}, err
		}
		last = &b
	}
	b, err := *last, error(nil)
	if after > 0 && b.value+b.changedAt <= after {
		b, err = b.raise(ctx, s, after)
	}
	if err != nil {
		return base{}, err
	}
	t.mu.Lock()
	t.last = &b
	t.mu.Unlock()
	return b, nil
}

// checks are the conditions in a transaction under which b is the base.
func (b base) checks(root string) []any {
	return []any{
		&zk.CheckVersionRequest{Path: root, Version: b.rootVersion},
		&zk.CheckVersionRequest{Path: b.path, Version: b.version},
	}
}

// read reads the base from ZooKeeper. It creates the nodes that are missing, and gives an unreadable root a new ID.
func (t *tokens) read(ctx context.Context, s *session) (base, error) {
	for {
		root, err := get(ctx, s, t.root)
		if errors.Is(err, zk.ErrNoNode) {
			if err := t.create(ctx, s); err != nil {
				return base{}, err
			}
			continue
		}
		if err != nil {
			return base{}, err
		}
		id, err := uuid.Parse(string(root.data))
		if err != nil {
			if _, err := set(ctx, s, t.root, []byte(uuid.NewString()), root.stat.Version); err != nil && !changed(err) {
				return base{}, err
			}
			continue
		}
		b := base{rootVersion: root.stat.Version, path: t.root + "/tokens-" + id.String()}
		n, err := get(ctx, s, b.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			if err := create(ctx, s, b.path, []byte("0"), zk.FlagPersistent); err != nil && !changed(err) {
				return base{}, err
			}
			continue
		case err != nil:
			return base{}, err
		}
		raised, err := strconv.ParseInt(string(n.data), 10, 64)
		if err != nil || raised < 0 || raised >= 1<<53 {
			return base{}, fmt.Errorf("node %s has data %.40q, and not a number; while no lock is held, write the number that it had, or delete the node %s with all below", b.path, n.data, t.root)
		}
		b.value, b.version, b.changedAt = n.stat.Ctime*1000+raised, n.stat.Version, n.stat.Mzxid
		return b, nil
	}
}

// create creates the root and the nodes above.
func (t *tokens) create(ctx context.Context, s *session) error {
	for i, r := range t.root + "/" {
		if r != '/' || i == 0 {
			continue
		}
		var data []byte
		if i == len(t.root) {
			data = []byte(uuid.NewString())
		}
		if err := create(ctx, s, t.root[:i], data, zk.FlagPersistent); err != nil && !changed(err) {
			return err
		}
	}
	return nil
}

// raise returns a base with which the next token is larger than after.
func (b base) raise(ctx context.Context, s *session, after locking.Token) (base, error) {
	n, err := get(ctx, s, b.path)
	if err != nil {
		return b, err
	}
	// A change of the node returns the number of the last change. The library has no other way.
	stat, err := set(ctx, s, b.path, n.data, n.stat.Version)
	if err != nil {
		return b, err
	}
	raised, err := strconv.ParseInt(strings.TrimSpace(string(n.data)), 10, 64)
	if err != nil {
		return b, fmt.Errorf("node %s has data %.40q, and not a number", b.path, n.data)
	}
	b.value, b.version, b.changedAt = stat.Ctime*1000+raised, stat.Version, stat.Mzxid
	missing := after - (b.value + b.changedAt)
	switch {
	case missing > maxAhead:
		return b, &locking.InputError{Field: "Options.After", Why: fmt.Sprintf("is %d, %d above the last token; no guard can have accepted it", after, missing)}
	case missing < 0:
		return b, nil
	}
	stat, err = set(ctx, s, b.path, []byte(strconv.FormatInt(raised+missing, 10)), b.version)
	if err != nil {
		return b, err
	}
	b.value, b.version, b.changedAt = b.value+missing, stat.Version, stat.Mzxid
	return b, nil
}
