package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
)

// EmbeddedCluster is a Redis Cluster of three masters inside this process, without ports and replicas, for tests in virtual
// time. Its servers answer CLUSTER SLOTS, and MOVED for a key of another master.
type EmbeddedCluster struct {
	masters []*Embedded

	mu     sync.Mutex
	owners [clusterSlots]int // index of each slot's master
	open   map[int]bool      // slots on their way to another master
}

// EmbedCluster starts an embedded Cluster. In a synctest bubble, call it inside the bubble and Close it there.
func EmbedCluster() (*EmbeddedCluster, error) {
	c := &EmbeddedCluster{open: make(map[int]bool)}
	for slot := range c.owners {
		c.owners[slot] = slot * clusterMasters / clusterSlots
	}
	for i := range clusterMasters {
		e, err := Embed()
		if err != nil {
			c.Close()
			return nil, err
		}
		e.addr = fmt.Sprintf("127.0.0.1:%d", 6379+i)
		e.SetHook(func(p *server.Peer, cmd string, args ...string) bool { return c.answer(i, p, cmd, args) })
		c.masters = append(c.masters, e)
	}
	return c, nil
}

// Masters returns the servers, in the order of their first slots.
func (c *EmbeddedCluster) Masters() []*Embedded { return c.masters }

// Master returns the master of a key's slot.
func (c *EmbeddedCluster) Master(key string) *Embedded {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.masters[c.owners[keySlot(key)]]
}

// Close ends all servers. Close the clients first.
func (c *EmbeddedCluster) Close() {
	for _, e := range c.masters {
		e.Close()
	}
}

// Options returns the settings of Client. Calls never wait for a connection: go-redis shares the timers of such waits between
// clients, and a synctest bubble ends at a timer of another one.
func (c *EmbeddedCluster) Options() *redis.ClusterOptions {
	o := clusterOptions(nil)
	o.PoolSize = 1000
	for _, e := range c.masters {
		o.Addrs = append(o.Addrs, e.Addr())
	}
	o.Dialer = c.dial
	return o
}

// ClientOver returns a new client over networks: road returns the one for an address, nil for a healthy one. Heal the networks
// before the bubble ends. The caller closes the client.
func (c *EmbeddedCluster) ClientOver(road func(addr string) *Net) *redis.ClusterClient {
	o := c.Options()
	o.Dialer = dialOver(road, c.dial)
	return redis.NewClusterClient(o)
}

// Client returns a new client of the whole Cluster. The caller closes it.
func (c *EmbeddedCluster) Client() *redis.ClusterClient { return redis.NewClusterClient(c.Options()) }

func (c *EmbeddedCluster) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	for _, e := range c.masters {
		if e.Addr() == addr {
			return e.dial(ctx)
		}
	}
	return nil, fmt.Errorf("embedded redis cluster: no master has the address %s", addr)
}

// OpenSlot makes key's slot be on its way to another master, as in a reshard that takes long: its master answers TRYAGAIN, as
// Redis does to commands with several keys of which some have moved. MoveSlot does the rest.
func (c *EmbeddedCluster) OpenSlot(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[keySlot(key)] = true
}

// MoveSlot gives key's slot, with every key in it, to another master.
func (c *EmbeddedCluster) MoveSlot(key string, to *Embedded) {
	slot, from := keySlot(key), c.Master(key)
	c.OpenSlot(key) // no script writes between the copy and the end of the move
	for key, value := range from.Snapshot().keys {
		if keySlot(key) == slot {
			value.put(to.mini, key)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owners[slot] = slices.Index(c.masters, to)
	delete(c.open, slot)
}

// answer gives master i's answers that an embedded server alone lacks: to CLUSTER SLOTS, and to
// commands with other masters' keys. Redis checks the keys of a script before the script runs.
func (c *EmbeddedCluster) answer(i int, p *server.Peer, cmd string, args []string) bool {
	if cmd == "CLUSTER" && len(args) > 0 && strings.EqualFold(args[0], "slots") {
		c.writeSlots(p)
		return true
	}
	key, ok := firstKey(cmd, args)
	if !ok {
		return false
	}
	slot := keySlot(key)
	c.mu.Lock()
	owner, open := c.owners[slot], c.open[slot]
	c.mu.Unlock()
	switch {
	case owner != i:
		p.WriteError(fmt.Sprintf("MOVED %d %s", slot, c.masters[owner].Addr()))
	case open && (cmd == "EVAL" || cmd == "EVALSHA"):
		p.WriteError("TRYAGAIN Multiple keys request during rehashing of slot")
	default:
		return false
	}
	return true
}

// writeSlots writes one range of slots for each run of slots with one owner.
func (c *EmbeddedCluster) writeSlots(p *server.Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var firsts []int
	for slot, owner := range c.owners {
		if slot == 0 || owner != c.owners[slot-1] {
			firsts = append(firsts, slot)
		}
	}
	p.WriteLen(len(firsts))
	for i, first := range firsts {
		last := clusterSlots - 1
		if i+1 < len(firsts) {
			last = firsts[i+1] - 1
		}
		p.WriteLen(3)
		p.WriteInt(first)
		p.WriteInt(last)
		p.WriteLen(3)
		p.WriteBulk("127.0.0.1")
		p.WriteInt(6379 + c.owners[first])
		p.WriteBulk(fmt.Sprintf("%040d", c.owners[first]))
	}
}

// keyless are commands of this project's clients whose first argument is no key.
var keyless = []string{
	"AUTH", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "DBSIZE", "DISCARD", "EXEC", "FLUSHALL", "FLUSHDB", "HELLO", "INFO", "KEYS", "MULTI", "PING", "PUBLISH",
	"QUIT", "READONLY", "SCAN", "SCRIPT", "SELECT", "SUBSCRIBE", "TIME", "UNSUBSCRIBE", "UNWATCH", "WAIT",
}

// firstKey returns the first key of a command.
func firstKey(cmd string, args []string) (key string, ok bool) {
	switch {
	case cmd == "EVAL" || cmd == "EVALSHA":
		if len(args) < 3 || args[1] == "0" {
			return "", false
		}
		return args[2], true
	case len(args) == 0 || slices.Contains(keyless, cmd):
		return "", false
	}
	return args[0], true
}

// keySlot returns the slot of a key: CRC-16/XMODEM of the key, or of the part between its first
// braces, modulo 16,384. See
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/.
func keySlot(key string) int {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, closed := strings.Cut(after, "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % clusterSlots
}
