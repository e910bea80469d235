//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// node is a line of CLUSTER NODES: one node's view of a node, perhaps of itself.
type node struct {
	id     string
	flags  string // with commas: myself, master, slave, fail, handshake, ...
	epoch  int    // of two masters of one slot, the one with the larger is right
	linked bool
	slots  []string // "5", "0-100", or "[5->-id]" while it moves
}

func (n node) has(flag string) bool { return slices.Contains(strings.Split(n.flags, ","), flag) }

// serves reports whether n has the slot.
func (n node) serves(slot int) bool {
	return slices.ContainsFunc(n.slots, func(s string) bool {
		first, last, many := strings.Cut(s, "-")
		from, err := strconv.Atoi(first)
		if err != nil || !many {
			return err == nil && from == slot
		}
		to, err := strconv.Atoi(last)
		return err == nil && from <= slot && slot <= to
	})
}

// nodes returns the cluster in the view of s.
func nodes(ctx context.Context, s *Server) ([]node, error) {
	text, err := orderOnce(ctx, s, "cluster", "nodes").Text()
	if err != nil {
		return nil, err
	}
	var known []node
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			return nil, fmt.Errorf("redis cluster: %s: CLUSTER NODES has the line %q", s.Addr(), line)
		}
		epoch, err := strconv.Atoi(f[6])
		if err != nil {
			return nil, fmt.Errorf("redis cluster: %s: CLUSTER NODES has the epoch %q", s.Addr(), f[6])
		}
		known = append(known, node{id: f[0], flags: f[2], epoch: epoch, linked: f[7] == "connected", slots: f[8:]})
	}
	return known, nil
}

// orderOnce sends a command to a server that may be paused. The caller repeats it.
func orderOnce(ctx context.Context, s *Server, args ...any) *redis.Cmd {
	ctx, cancel := context.WithTimeout(ctx, nodeAnswers)
	defer cancel()
	return order(ctx, s, args...)
}

// order sends a command to a server that answers, however slow the machine is.
func order(ctx context.Context, s *Server, args ...any) *redis.Cmd {
	c := redis.NewClient(patientOptions(s.Addr()))
	defer c.Close()
	return c.Do(ctx, args...)
}

func myID(ctx context.Context, s *Server) (string, error) {
	return order(ctx, s, "cluster", "myid").Text()
}

// inSync reports whether s is a replica that follows its master.
func inSync(ctx context.Context, s *Server) (bool, error) {
	info, err := orderOnce(ctx, s, "info", "replication").Text()
	return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up"), err
}

// Master returns the master of key's slot, from the nodes, once there is one. Of two nodes that
// claim the slot the later one counts.
func (c *Cluster) Master(ctx context.Context, key string) (s *Server, err error) {
	ctx, cancel := context.WithTimeout(ctx, standstill)
	defer cancel()
	slot := keySlot(key)
	err = until(ctx, fmt.Sprintf("slot %d has a master", slot), func(ctx context.Context) (bool, error) {
		s, err = c.masterOf(ctx, slot)
		return err == nil, err
	})
	return s, err
}

func (c *Cluster) masterOf(ctx context.Context, slot int) (*Server, error) {
	var found *Server
	var errs []error
	latest := -1
	for _, s := range c.servers {
		known, err := nodes(ctx, s)
		errs = append(errs, err)
		for _, n := range known {
			if n.has("myself") && n.has("master") && n.serves(slot) && n.epoch > latest {
				found, latest = s, n.epoch
			}
		}
	}
	if found == nil {
		return nil, errors.Join(append(errs, fmt.Errorf("redis cluster: slot %d has no master that answers", slot))...)
	}
	return found, nil
}

// Promoted waits until another server than old is master of key's slot and
// serves, and returns it.
func (c *Cluster) Promoted(ctx context.Context, key string, old *Server) (now *Server, err error) {
	err = until(ctx, "another server than "+old.Addr()+" is master of "+key, func(ctx context.Context) (bool, error) {
		if now, err = c.Master(ctx, key); err != nil || now == old {
			return false, err
		}
		state, err := orderOnce(ctx, now, "cluster", "info").Text()
		return strings.Contains(state, "cluster_state:ok"), err
	})
	return now, err
}

// Replica returns the replica of master, from the nodes.
func (c *Cluster) Replica(ctx context.Context, master *Server) (*Server, error) {
	_, port, _ := strings.Cut(master.Addr(), ":")
	var errs []error
	for _, s := range c.servers {
		info, err := orderOnce(ctx, s, "info", "replication").Text()
		if errs = append(errs, err); strings.Contains(info, "master_port:"+port+"\r") {
			return s, nil
		}
	}
	return nil, errors.Join(append(errs, fmt.Errorf("redis cluster: no node that answers follows %s", master.Addr()))...)
}

// Demoted waits until server is a replica, in sync with its master.
func (c *Cluster) Demoted(ctx context.Context, server *Server) error {
	return until(ctx, server.Addr()+" is a replica", func(ctx context.Context) (bool, error) { return inSync(ctx, server) })
}

// MoveSlot moves key's slot, and every key in it, to another master, as redis-cli --cluster reshard
// does. It returns when all masters have the change.
func (c *Cluster) MoveSlot(ctx context.Context, key string, to *Server) error {
	slot := keySlot(key)
	from, err := c.Master(ctx, key)
	if err != nil || from == to {
		return err
	}
	if err := openSlot(ctx, slot, from, to); err != nil {
		return err
	}
	if err := moveKeys(ctx, slot, from, to); err != nil {
		return err
	}
	return c.closeSlot(ctx, slot, from, to)
}

// OpenSlot informs both masters that key's slot is on its way to another master, and moves nothing:
// as while a slot with many keys is being moved. MoveSlot to the same master does the rest.
func (c *Cluster) OpenSlot(ctx context.Context, key string, to *Server) error {
	slot := keySlot(key)
	from, err := c.Master(ctx, key)
	if err != nil || from == to {
		return err
	}
	return openSlot(ctx, slot, from, to)
}

func openSlot(ctx context.Context, slot int, from, to *Server) error {
	fromID, err := myID(ctx, from)
	if err != nil {
		return err
	}
	toID, err := myID(ctx, to)
	if err != nil {
		return err
	}
	if err := order(ctx, to, "cluster", "setslot", slot, "importing", fromID).Err(); err != nil {
		return fmt.Errorf("redis cluster: move slot %d to %s: %w", slot, to.Addr(), err)
	}
	if err := order(ctx, from, "cluster", "setslot", slot, "migrating", toID).Err(); err != nil {
		return fmt.Errorf("redis cluster: move slot %d from %s: %w", slot, from.Addr(), err)
	}
	return nil
}

// moveKeys moves the keys of the slot until it is empty. The old master redirects writes meanwhile.
func moveKeys(ctx context.Context, slot int, from, to *Server) error {
	for {
		keys, err := order(ctx, from, "cluster", "getkeysinslot", slot, 100).Slice()
		if err != nil || len(keys) == 0 {
			return err
		}
		args := append([]any{"migrate", "127.0.0.1", to.cfg.Port, "", 0, standstill.Milliseconds(), "keys"}, keys...)
		if err := order(ctx, from, args...).Err(); err != nil {
			return fmt.Errorf("redis cluster: move the keys of slot %d to %s: %w", slot, to.Addr(), err)
		}
	}
}

// closeSlot gives the slot to its new master, which must get the change first.
func (c *Cluster) closeSlot(ctx context.Context, slot int, from, to *Server) error {
	id, err := myID(ctx, to)
	if err != nil {
		return err
	}
	for _, s := range []*Server{to, from} {
		if err := order(ctx, s, "cluster", "setslot", slot, "node", id).Err(); err != nil {
			return fmt.Errorf("redis cluster: give slot %d to %s: %w", slot, to.Addr(), err)
		}
	}
	return until(ctx, fmt.Sprintf("all nodes know that slot %d is at %s", slot, to.Addr()), func(ctx context.Context) (bool, error) {
		return c.all(ctx, func(known []node) bool {
			return slices.ContainsFunc(known, func(n node) bool { return n.id == id && n.serves(slot) })
		})
	})
}
