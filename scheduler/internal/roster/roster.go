package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/sharding"
)

const (
	defaultNamespace = "escapement"
	defaultTTL       = 5 * time.Second
	minTTL           = 100 * time.Millisecond
	maxTTL           = time.Hour

	// keepSets is how many TTLs a set outlives the last beat that named it: long enough for a node
	// that was paused and comes back.
	keepSets = 12
	// idle is when the keys of a namespace without beats expire.
	idle = 7 * 24 * time.Hour
)

// Config sets where the roster is stored, and how long a silent node stays in it. The zero value is
// useful.
type Config struct {
	// Namespace is the prefix of the keys. It must not contain braces, because it becomes the keys'
	// hash tag. Default "escapement".
	Namespace string
	// TTL is how long a node without beats still counts. All nodes should have the same. From 100
	// ms to 1 h, in whole milliseconds. Default 5 s.
	TTL time.Duration
}

func (c Config) withDefaults() Config {
	if c.Namespace == "" {
		c.Namespace = defaultNamespace
	}
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	return c
}

func (c Config) validate() error {
	if strings.ContainsAny(c.Namespace, "{}") {
		return fmt.Errorf("roster: namespace %q has a brace; use letters, digits and - _ . :", c.Namespace)
	}
	if c.TTL < minTTL || c.TTL > maxTTL {
		return fmt.Errorf("roster: roster ttl %v is not between %v and %v", c.TTL, minTTL, maxTTL)
	}
	if c.TTL%time.Millisecond != 0 {
		return fmt.Errorf("roster: roster ttl %v is not in whole milliseconds", c.TTL)
	}
	return nil
}

// Roster is the list of living nodes of one namespace, stored in Redis. It holds no state and
// starts nothing. Its methods may be called concurrently.
type Roster struct {
	client redis.UniversalClient
	ttl    time.Duration
	keys   keys
	err    error // the config's error; every method returns it
}

// New returns the roster of cfg.Namespace. The caller keeps the client. Each method reports an
// invalid config before it sends anything.
func New(client redis.UniversalClient, cfg Config) *Roster {
	cfg = cfg.withDefaults()
	return &Roster{client: client, ttl: cfg.TTL, keys: newKeys(cfg.Namespace), err: cfg.validate()}
}

// View is the roster at one instant.
type View struct {
	// Members are the nodes, ordered by ID.
	Members []Member
	// NowMS is Redis' clock in milliseconds since 1970.
	NowMS int64
	// UnknownFormat counts the records that Members lacks because they cannot be read: of a newer
	// version, damaged, or larger than MaxRecord.
	UnknownFormat int
	// Unannounced reports that the set named by self.Set is not stored: it never was, or Redis lost
	// it. Call Announce. Only Beat fills it in.
	Unannounced bool
	// Drained is the author and reason of the drain of the beating node's name; nil for none. The
	// node must take nothing new. Other nodes see its Draining at once, whatever self contained;
	// the node changes its State itself. Only Beat fills it in.
	Drained *Drained
	// Epoch counts promotions of generations, as in the namespace's control record. When it grows,
	// the definitions that may be claimed have changed, or are about to. Only Beat fills it in.
	Epoch int64
	// Source is the id of the server and the namespace's incarnation. When it is another text, the
	// roster may have lost nodes. Only Beat fills it in.
	Source string
}

// Believed is Redis' time as most living members go by it: Redis' own clock, unless more of them
// disbelieve that clock than believe it.
func (v View) Believed() time.Time {
	var off []int64
	believe := 0
	for _, m := range v.Members {
		switch {
		case m.State == StateGone:
		case m.UnbelievedMS == 0:
			believe++
		default:
			off = append(off, m.UnbelievedMS)
		}
	}
	now := v.NowMS
	if len(off) > believe {
		slices.Sort(off)
		now -= off[len(off)/2]
	}
	return time.UnixMilli(now).UTC()
}

// Nodes returns the members in the form that Rank and Owner take.
func (v View) Nodes() []sharding.Node {
	nodes := make([]sharding.Node, len(v.Members))
	for i, m := range v.Members {
		nodes[i] = m.Node
	}
	return nodes
}

// Beat writes self into the roster, drops nodes and sets that were not seen for too long, and
// returns the living members, self included. It is one script call. Call it at least every third of
// the TTL. A record larger than MaxRecord is refused with ErrTooLarge. Errors of Redis are wrapped
// unchanged; call again after one, because a repeated beat changes nothing.
func (r *Roster) Beat(ctx context.Context, self Member) (View, error) {
	if r.err != nil {
		return View{}, r.err
	}
	raw, err := encodeMember(self)
	if err != nil {
		return View{}, fmt.Errorf("roster: beat of node %q: %w", self.ID, err)
	}
	drains := self
	drains.Draining = true
	cordoned, err := encodeMember(drains)
	if err != nil {
		return View{}, fmt.Errorf("roster: beat of node %q: %w", self.ID, err)
	}
	ttl := r.ttl.Milliseconds()
	cmd := beatScript.Run(ctx, r.client,
		[]string{r.keys.roster, r.keys.seen, r.keys.sets, r.keys.setsSeen, r.keys.drains, r.keys.control},
		self.ID, raw, ttl, self.Set, keepSets*ttl, MaxRecord, idle.Milliseconds(), self.Name, cordoned)
	rep, err := parseReply(cmd)
	if err != nil {
		return View{}, fmt.Errorf("roster: beat of node %q: %w", self.ID, err)
	}
	return newView(rep), nil
}

// Look reads the roster and changes nothing. Members that were not seen for the TTL, and that no
// beat has dropped, have StateGone.
func (r *Roster) Look(ctx context.Context) (View, error) {
	if r.err != nil {
		return View{}, r.err
	}
	rep, err := parseReply(membersScript.Run(ctx, r.client, []string{r.keys.roster, r.keys.seen}, MaxRecord))
	if err != nil {
		return View{}, fmt.Errorf("roster: read the roster: %w", err)
	}
	v := newView(rep)
	for i := range v.Members {
		if v.NowMS-v.Members[i].Seen.UnixMilli() >= r.ttl.Milliseconds() {
			v.Members[i].State = StateGone
		}
	}
	return v, nil
}

// Members returns Look's members, for tools that need nothing else.
func (r *Roster) Members(ctx context.Context) ([]Member, error) {
	v, err := r.Look(ctx)
	return v.Members, err
}

// Leave removes a node from the roster at once. A node that is not in it is no error. No Beat of
// the same node may be under way.
func (r *Roster) Leave(ctx context.Context, id string) error {
	if r.err != nil {
		return r.err
	}
	if id == "" {
		return errors.New("roster: leave: the node's ID is empty; use the one it beats with")
	}
	err := redisconn.TxPipelined(ctx, r.client, func(p redis.Pipeliner) error {
		p.HDel(ctx, r.keys.roster, id)
		p.ZRem(ctx, r.keys.seen, id)
		return nil
	})
	if err != nil {
		return fmt.Errorf("roster: node %q leaves: %w", id, err)
	}
	return nil
}

func newView(rep reply) View {
	v := View{NowMS: rep.nowMS, Unannounced: !rep.known, Epoch: rep.epoch, Source: rep.source}
	if rep.drain != "" {
		d := decodeDrained(rep.drain)
		v.Drained = &d
	}
	for _, r := range rep.rows {
		if m, ok := decodeMember(r); ok {
			v.Members = append(v.Members, m)
		} else {
			v.UnknownFormat++
		}
	}
	slices.SortFunc(v.Members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return v
}
