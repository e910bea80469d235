package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
)

// Config is the namespace to move and the settings of the move.
type Config struct {
	// Namespace is the namespace to move; default "escapement". It keeps its name.
	Namespace string
	// Partitions is the namespace's number of partitions at the other side, 1 to 1024. 0 is as many
	// as before, or as it had there once.
	Partitions int
	// MaxSkew is the largest difference between the two clocks; default 1 s, as the nodes'
	// max_skew.
	MaxSkew time.Duration
	// FromName and ToName are the addresses for people, without passwords; default the clients'
	// addresses. They should be the same in every step.
	FromName, ToName string
	// Logger logs the progress; default is to be silent.
	Logger *slog.Logger
}

// Mover moves one namespace from one Redis to another. It keeps no state between two steps, so each
// may be another process. It starts no goroutine.
type Mover struct {
	cfg      Config
	from, to redis.UniversalClient
	log      *slog.Logger
}

// New returns a Mover; it sends nothing to either Redis. It returns an error for clients and
// settings that cannot work.
func New(from, to redis.UniversalClient, cfg Config) (*Mover, error) {
	cfg.Namespace = cmp.Or(cfg.Namespace, "escapement")
	cfg.MaxSkew = cmp.Or(cfg.MaxSkew, time.Second)
	var errs []error
	for _, client := range []redis.UniversalClient{from, to} {
		errs = append(errs, redisconn.Check(client))
	}
	if cfg.Partitions < 0 || cfg.Partitions > 1024 {
		errs = append(errs, fmt.Errorf("partitions %d: must lie between 1 and 1024, or be 0 for as many as before", cfg.Partitions))
	}
	if cfg.MaxSkew < 0 {
		errs = append(errs, fmt.Errorf("max skew %s: must not be negative", cfg.MaxSkew))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("move: %w", err)
	}
	cfg.FromName, cfg.ToName = cmp.Or(cfg.FromName, redisconn.Addr(from)), cmp.Or(cfg.ToName, redisconn.Addr(to))
	bars := strings.NewReplacer("|", "/", "\n", " ") // as the control records have them
	cfg.FromName, cfg.ToName = bars.Replace(cfg.FromName), bars.Replace(cfg.ToName)
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Mover{cfg: cfg, from: from, to: to, log: log}, nil
}

// side is a namespace in one Redis, as it was read.
type side struct {
	name    string
	client  redis.UniversalClient
	led     *ledger.Ledger // nil when the namespace is not there
	control ledger.Control
	notes   export.MoveNotes
	gates   []ledger.Gate
}

// state returns the recorded state of the move id in this role, "" when this side has no such
// record.
func (s side) state(role, id string) string {
	if s.notes.ID != id || s.notes.Role != role || id == "" {
		return ""
	}
	return s.notes.State
}

// has reports whether a gate is in this state, with the move id as its last.
func (s side) has(state, id string) bool {
	return id != "" && slices.ContainsFunc(s.gates, func(g ledger.Gate) bool { return g.State == state && g.Move == id })
}

func (m *Mover) side(ctx context.Context, client redis.UniversalClient, name string) (side, error) {
	s := side{name: name, client: client}
	led, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: m.cfg.Namespace, MaxSkew: m.cfg.MaxSkew})
	if errors.Is(err, ledger.ErrNoNamespace) {
		return s, nil
	}
	if err == nil {
		s.led = led
		s.control, err = led.Control(ctx)
	}
	if err == nil {
		s.notes, err = export.ReadMoveNotes(ctx, led)
	}
	if err == nil {
		s.gates, err = led.Gates(ctx)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// sides reads both sides. It returns ledger.ErrNoNamespace when there is nothing to move, and
// ErrRefused when both are one.
func (m *Mover) sides(ctx context.Context) (from, to side, err error) {
	if from, err = m.side(ctx, m.from, m.cfg.FromName); err != nil {
		return from, to, err
	}
	if from.led == nil {
		return from, to, m.unused(ctx, from)
	}
	if to, err = m.side(ctx, m.to, m.cfg.ToName); err != nil {
		return from, to, err
	}
	return from, to, m.differ(ctx)
}

// unused is ledger.ErrNoNamespace for a side.
func (m *Mover) unused(ctx context.Context, of side) error {
	err := fmt.Errorf("%w: %q has never been used in the Redis at %s; name another with --namespace, or another Redis with --from",
		ledger.ErrNoNamespace, m.cfg.Namespace, of.name)
	if replica := ledger.AtReplica(ctx, of.client, m.cfg.Namespace, err); replica != err { //nolint:errorlint // is it the same value
		return fmt.Errorf("%s: %w", of.name, replica)
	}
	return err
}

// differ refuses a move from a Redis to itself. Two addresses may be one server, and one server may
// have several databases.
func (m *Mover) differ(ctx context.Context) error {
	_, a, err := export.TimeOf(ctx, m.from, m.cfg.Namespace)
	if err != nil {
		return fmt.Errorf("%s: %w", m.cfg.FromName, err)
	}
	_, b, err := export.TimeOf(ctx, m.to, m.cfg.Namespace)
	if err != nil {
		return fmt.Errorf("%s: %w", m.cfg.ToName, err)
	}
	if a != "" && a == b && database(m.from) == database(m.to) {
		return fmt.Errorf("%w: %s and %s are the same Redis (id %s); name another one with --to", ledger.ErrRefused, m.cfg.FromName, m.cfg.ToName, a)
	}
	return nil
}

func database(client redis.UniversalClient) int {
	if c, ok := client.(interface{ Options() *redis.Options }); ok {
		return c.Options().DB
	}
	return 0
}

// under returns the id of the move under way between these two, "" for none. A seal that was killed
// before it wrote anything to from has left its id at to only. The same holds for a seal whose
// record a failover of from has lost; the move may then have come further, and the gates decide.
func (m *Mover) under(from, to side) string {
	if from.notes.Role == ledger.MoveFrom {
		return from.notes.ID
	}
	n := to.notes
	if to.led == nil || n.Role != ledger.MoveTo || n.ID <= max(from.notes.ID, from.notes.Undone) {
		return ""
	}
	named := n.Peer == from.name && (n.State == ledger.MoveFilling || n.State == ledger.MoveOpening)
	if named || from.has("sealed", n.ID) {
		return n.ID
	}
	return ""
}

// astray refuses a Redis without a record of the move under way, which goes to another address:
// otherwise there might be two such places, one of them never burnt. At the right address, the
// Redis has lost the record.
func (m *Mover) astray(from, to side, id string) error {
	state := from.state(ledger.MoveFrom, id)
	if state == "" || state == ledger.MoveMoved || to.state(ledger.MoveTo, id) != "" || from.notes.Peer == to.name {
		return nil
	}
	return refuse("the move that is under way goes to %s, and %s knows nothing of it; name that one with --to", from.notes.Peer, to.name)
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ledger.ErrRefused, fmt.Errorf(format, args...))
}
