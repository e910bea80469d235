package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// UseDialledEndpoints makes a Cluster client follow servers that do not announce their addresses
// (cluster-preferred-endpoint-type unknown-endpoint, or hostname without a name). Such a server's
// redirects mean the host at which the client called it, with another port. go-redis fails there
// with "redis: nil". Call UseDialledEndpoints before the client's first use; Address.Client does.
func UseDialledEndpoints(c *redis.ClusterClient) {
	seed := ""
	if addrs := c.Options().Addrs; len(addrs) > 0 {
		seed, _, _ = net.SplitHostPort(addrs[0])
	}
	c.OnNewNode(func(node *redis.Client) {
		host, _, _ := net.SplitHostPort(node.Options().Addr)
		if unknownHost(host) { // of a redirect
			host = seed
		}
		node.AddHook(endpointHook{host})
	})
}

// unknownHost reports whether a server gave no address: "?" stands for a host name that is not set.
func unknownHost(host string) bool { return host == "" || host == "?" }

// endpointHook is part of the client of one server of a Cluster, and fills in the host of that
// server where a redirect has none.
type endpointHook struct{ host string }

// DialHook dials a redirect's address without a host.
func (h endpointHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return next(ctx, network, h.known(addr))
	}
}

func (h endpointHook) known(addr string) string {
	if host, port, err := net.SplitHostPort(addr); err == nil && unknownHost(host) {
		return net.JoinHostPort(h.host, port)
	}
	return addr
}

// ProcessHook reads the slots of the Cluster itself: go-redis stops at an endpoint that is NULL, in the middle of the
// reply, and the connection's next reply is the rest of it.
func (h endpointHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		slots, is := cmd.(*redis.ClusterSlotsCmd)
		if !is {
			return next(ctx, cmd)
		}
		raw := redis.NewSliceCmd(ctx, "cluster", "slots")
		err := next(ctx, raw)
		if err == nil {
			var all []redis.ClusterSlot
			if all, err = h.slots(raw.Val()); err == nil {
				slots.SetVal(all)
				return nil
			}
		}
		slots.SetErr(err)
		return err
	}
}

// ProcessPipelineHook changes nothing: the slots are read alone.
func (h endpointHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

var errSlots = errors.New("CLUSTER SLOTS was answered in a form that is not known")

// slots reads the reply of CLUSTER SLOTS: each range of slots with its servers, the master first.
func (h endpointHook) slots(reply []any) ([]redis.ClusterSlot, error) {
	all := make([]redis.ClusterSlot, 0, len(reply))
	for _, item := range reply {
		fields, is := item.([]any)
		if !is || len(fields) < 2 {
			return nil, fmt.Errorf("%w: %T of %d fields", errSlots, item, len(fields))
		}
		start, ok1 := fields[0].(int64)
		end, ok2 := fields[1].(int64)
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("%w: a range from %v to %v", errSlots, fields[0], fields[1])
		}
		slot := redis.ClusterSlot{Start: int(start), End: int(end)}
		for _, server := range fields[2:] {
			node, err := h.node(server)
			if err != nil {
				return nil, err
			}
			slot.Nodes = append(slot.Nodes, node)
		}
		all = append(all, slot)
	}
	return all, nil
}

// node reads a server: its endpoint, which may be NULL, its port, and its id.
func (h endpointHook) node(server any) (n redis.ClusterNode, err error) {
	fields, is := server.([]any)
	if !is || len(fields) < 2 {
		return n, fmt.Errorf("%w: %T for a server", errSlots, server)
	}
	host, _ := fields[0].(string) // "" for NULL
	port, is := fields[1].(int64)
	if !is {
		return n, fmt.Errorf("%w: the port %v", errSlots, fields[1])
	}
	n.Addr = h.known(net.JoinHostPort(host, strconv.FormatInt(port, 10)))
	if len(fields) > 2 {
		n.ID, _ = fields[2].(string)
	}
	return n, nil
}

// hasTopology reports whether a client has loaded the Cluster's slots, without which it sends no
// command. It sends nothing.
func hasTopology(c *redis.ClusterClient) bool {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.MasterForKey(ended, "")
	return err == nil
}

// unnamedServers is a Cluster whose servers have no addresses for go-redis, which fails there with redis.Nil.
func unnamedServers(a Address) *Trouble {
	return &Trouble{Kind: KindSetting, Setting: SettingURL, Text: "Redis at " + a.String() + " does not tell the addresses of its servers (cluster-preferred-endpoint-type)",
		Cure: "make the client with scheduler.Connect, which takes those that it dials, or set cluster-preferred-endpoint-type ip there"}
}
