package ledger

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var incarnateScript = Ship("incarnate", incarnateArgs{})

// An epoch is a time in which a partition keeps every record that nodes rely on. Its id is the
// server's id and the partition's incarnation, parted by '/'. It ends when another server answers,
// and when the gate or the incarnation is gone: then Redis was emptied, or has lost single records.
// The next node that opens or restores the namespace makes another incarnation.

// EpochID is the id of an epoch.
func EpochID(server, incarnation string) string { return server + "/" + incarnation }

// ServerOf is the server that an epoch's id names.
func ServerOf(epoch string) string {
	server, _, _ := strings.Cut(epoch, "/")
	return server
}

// Incarnation is the incarnation that an epoch's id names; "" for a partition that has lost it.
func Incarnation(epoch string) string {
	_, id, _ := strings.Cut(epoch, "/")
	return id
}

// MadeAfterLoss returns when an incarnation was made, by Redis' clock, if nodes made it because
// Redis had lost records.
func MadeAfterLoss(incarnation string) (at time.Time, yes bool) {
	_, text, yes := strings.Cut(incarnation, "@")
	n, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(n), yes && err == nil
}

// LackedBefore are the keys that lacked records when an incarnation was made: that they do is known
// in its epoch.
func LackedBefore(incarnation string) []string {
	id, _, _ := strings.Cut(incarnation, "@")
	_, keys, _ := strings.Cut(id, ":")
	return strings.Split(keys, "+")
}

// Sample is a master's clock and identity at one instant.
type Sample struct {
	Now    time.Time
	Server string        // its id, as server_id of token.lua has it
	Up     time.Duration // how long the server has run, in whole seconds; negative when unknown
	// Control is the namespace's incarnation, "" where there is none. Only Ledger.Sample fills it
	// in.
	Control string
	// Incarnations are the incarnations of the requested partitions; "" for a partition that has
	// lost its incarnation or its gate. Partitions of other masters are absent.
	Incarnations map[int]string
}

// Sample reads Redis' clock and id, in one round trip, and from an only server the incarnations of
// all partitions. On a Cluster the master of the control record answers, always the same.
func (l *Ledger) Sample(ctx context.Context) (Sample, error) {
	return l.sampleControl(ctx, l.All())
}

// sampleControl reads the server that has the control record; partitions only from an only server.
func (l *Ledger) sampleControl(ctx context.Context, parts []int) (s Sample, err error) {
	server := l.Client
	if cluster, yes := l.Client.(*redis.ClusterClient); yes {
		parts = nil
		server, err = cluster.MasterForKey(ctx, NamespaceKeys(l.Config.Namespace).Control)
	}
	if err == nil {
		s, err = l.SampleOf(ctx, server, NamespaceKeys(l.Config.Namespace).Control, parts)
	}
	return s, l.Explain(ctx, "read the clock", err)
}

// SampleOf reads one server. control is the key of the control record, "" not to read it.
func (l *Ledger) SampleOf(ctx context.Context, server redis.UniversalClient, control string, parts []int) (s Sample, err error) {
	var clock *redis.TimeCmd
	var replication, info, incarnation *redis.StringCmd
	var held []incarnationRead
	_, err = server.Pipelined(ctx, func(p redis.Pipeliner) error {
		clock, replication, info = p.Time(ctx), p.Info(ctx, "replication"), p.Info(ctx, "server")
		if control != "" {
			incarnation = p.HGet(ctx, control, "incarnation")
		}
		held = l.readIncarnations(ctx, p, parts)
		return nil
	})
	if clock.Err() != nil {
		return Sample{}, err
	}
	s = Sample{Now: clock.Val(), Server: serverID(replication.Val(), info.Val()), Up: -1, Incarnations: make(map[int]string, len(parts))}
	if up := field(info.Val(), "uptime_in_seconds"); up != "" {
		s.Up = time.Duration(Number(up)) * time.Second
	}
	if incarnation != nil {
		s.Control = incarnation.Val()
	}
	for i, part := range parts {
		if incarnation, err := held[i].result(); err == nil {
			s.Incarnations[part] = incarnation
		}
	}
	return s, nil
}

// incarnationRead is the reading of a partition's incarnation and of its gate.
type incarnationRead struct{ gate, incarnation *redis.StringCmd }

func (l *Ledger) readIncarnations(ctx context.Context, p redis.Pipeliner, parts []int) (all []incarnationRead) {
	for _, part := range parts {
		all = append(all, incarnationRead{p.Get(ctx, l.Keys[part].Gate), p.Get(ctx, l.Keys[part].Incarnation)})
	}
	return all
}

// result is the incarnation; "" when it or the gate is lost.
func (r incarnationRead) result() (incarnation string, err error) {
	for _, err := range []error{r.gate.Err(), r.incarnation.Err()} {
		if errors.Is(err, redis.Nil) {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	return r.incarnation.Val(), nil
}

// incarnateArgs are the arguments of incarnate.lua.
type incarnateArgs struct {
	ID   string `json:"id"`
	Was  string `json:"was"`  // the incarnation to be replaced, "" for none
	Lost bool   `json:"lost"` // records were lost, as far as is known
	// Open makes a gate where there is none, of this epoch of promotions and this generation.
	Open       bool   `json:"open"`
	Epoch      int64  `json:"epoch,string"`
	Generation string `json:"generation"`
}

// incarnate gives partitions an incarnation that have none, or no gate. Where a move has closed the
// namespace, no gate is made.
func (l *Ledger) incarnate(ctx context.Context, c Control, parts []int, lost bool) error {
	args := incarnateArgs{ID: l.Config.NewID(), Lost: lost, Open: !c.closed(), Epoch: c.Epoch, Generation: c.Generation}
	return l.EachReachable(ctx, NodeQueueTimeout, "open namespace "+l.Config.Namespace, parts, func(ctx context.Context, parts []int) error {
		var held []incarnationRead
		_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			held = l.readIncarnations(ctx, p, parts)
			return nil
		})
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		for i, part := range parts {
			if err != nil {
				return err
			}
			var is string
			if is, err = held[i].result(); err == nil && is == "" {
				_, err = l.makeIncarnation(ctx, part, args)
			}
		}
		return err
	})
}

// Supersede gives a partition another incarnation, made after a loss, in place of this one, and
// reports whether this call has made that. The new one names the keys that lacked records.
func (l *Ledger) Supersede(ctx context.Context, part int, incarnation string, lacking ...string) (made bool, err error) {
	args := incarnateArgs{ID: l.Config.NewID(), Was: incarnation, Lost: true}
	if len(lacking) > 0 {
		args.ID += ":" + strings.Join(lacking, "+") // not ",": rosters have lists of ids
	}
	made, err = l.makeIncarnation(ctx, part, args)
	return made, l.Explain(ctx, "note that records were lost", err)
}

// makeIncarnation calls incarnate.lua, and notes an incarnation that this call has made.
func (l *Ledger) makeIncarnation(ctx context.Context, part int, args incarnateArgs) (made bool, err error) {
	id, err := incarnateScript.Call(ctx, l.Client, l.Keys[part].Tag, "", args).Text()
	if made = err == nil && strings.HasPrefix(id, args.ID); made {
		l.made.Store(part, id)
	}
	return made, err
}

// Made reports whether this ledger made a partition's incarnation, as the last one it made.
func (l *Ledger) Made(part int, incarnation string) bool {
	id, some := l.made.Load(part)
	return some && id == incarnation
}

// closed reports whether a move has closed the namespace, or may have.
func (c Control) closed() bool {
	m, err := ParseMove(c.Move)
	return err != nil || m.Closes()
}

// Time reads Redis' clock and id, see Sample.
func (l *Ledger) Time(ctx context.Context) (now time.Time, id string, err error) {
	s, err := l.sampleControl(ctx, nil)
	return s.Now, s.Server, err
}

// serverID is server_id of token.lua, from INFO's sections replication and server.
func serverID(replication, server string) string {
	if field(replication, "role") == "slave" {
		return Replica
	}
	return cmp.Or(field(replication, "master_replid"), field(server, "run_id"))
}

// field is a field of INFO's text, "" when absent.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// Replica is the id of a server that is no master.
const Replica = "replica"
