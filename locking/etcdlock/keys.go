package etcdlock

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// keyInfix separates a prefix from the name of a lock.
const keyInfix = "/lock/"

// lockKeys spells the keys of one lock. Names and owners are escaped as path segments, so neither contains
// a slash, and no lock's range has a key of another's.
type lockKeys struct {
	hold     string // begins the key of the holder: one key at most
	queue    string // begins the keys of the waiters
	released string // the owner value that released last
}

func keysOf(prefix, name string) lockKeys {
	lock := prefix + keyInfix + url.PathEscape(name)
	return lockKeys{hold: lock + "/hold/", queue: lock + "/queue/", released: lock + "/released"}
}

// offsetKey has the number that is added to revisions to make tokens.
func offsetKey(prefix string) string { return prefix + "/offset" }

// escaped returns an owner value as the end of a key.
func escaped(owner string) string { return url.PathEscape(owner) }

// ownerOf reads the owner value from a key that begins with dir.
func ownerOf(dir string, key []byte) string {
	segment := strings.TrimPrefix(string(key), dir)
	if owner, err := url.PathUnescape(segment); err == nil {
		return owner
	}
	return segment // a key of something else; shown as it is
}

// role is the purpose of an owner's lease.
type role string

const (
	holding role = "hold"  // the lock itself
	queued  role = "queue" // the place in the queue
)

// resized is the role of a hold lease with another length than the acquisition's.
func resized(seconds int64) role { return role("hold " + strconv.FormatInt(seconds, 10)) }

// leaseID returns the lease of an owner in a role. It follows from the names, so that a repeated
// request finds the lease of the first one, and Release needs no request to find it.
func (d *Driver) leaseID(name, owner string, r role) clientv3.LeaseID {
	h := sha256.New()
	for _, part := range []string{d.prefix, name, owner, string(r)} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return clientv3.LeaseID(binary.BigEndian.Uint64(h.Sum(nil))>>1 | 1)
}

// newLeaseID returns the id of a new lease.
func newLeaseID() clientv3.LeaseID { return clientv3.LeaseID(rand.Int64N(math.MaxInt64-1) + 1) }
