package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var (
	gateScript    = ledger.Ship("export/gate", GateStep{})
	reserveScript = ledger.Ship("export/reserve", reserveArgs{})
	advanceScript = ledger.Ship("export/advance", Step{})
	drainsScript  = ledger.Ship("export/drains", drainsArgs{})
)

// Reservation is a move's request for a namespace in the target Redis.
type Reservation struct {
	ledger.Config // Namespace, Partitions and Generation of the namespace to be
	ID            string
	Epoch         int64  // of the generation
	Peer          string // address of the Redis that it comes from
	Back          string // id of the move by which the namespace went from there to Peer, "" for none
	Burn          bool   // burn the move there, instead of making room for it
}

type reserveArgs struct {
	ID         string `json:"id"`
	Format     string `json:"format"`
	Partitions int    `json:"partitions,string"`
	Generation string `json:"generation"`
	Epoch      int64  `json:"epoch,string"`
	Peer       string `json:"peer"`
	State      string `json:"state"` // filling or burnt
	Back       string `json:"back"`
}

// Reserve writes the control record of a namespace that a move is going to fill, or that no move
// ever may. It may be repeated. It returns ErrRefused when another namespace is there, unless a
// move to there was undone, or the namespace has moved to where this one comes from.
func Reserve(ctx context.Context, client redis.UniversalClient, r Reservation) error {
	state := ledger.MoveFilling
	if r.Burn {
		state = ledger.MoveBurnt
	}
	where := redisconn.Addr(client)
	args := reserveArgs{r.ID, ledger.Format, r.Partitions, r.Generation, r.Epoch, ledger.Plain(r.Peer), state, r.Back}
	reply, err := reserveScript.Call(ctx, client, ledger.NamespaceTag(r.Namespace), "", args).StringSlice()
	if err != nil {
		return redisconn.Classify("reserve namespace "+r.Namespace+" at "+where, err)
	}
	switch {
	case len(reply) != 2:
		return fmt.Errorf("reserve namespace %s at %s: %d answers", r.Namespace, where, len(reply))
	case reply[0] == "done":
		return nil
	case reply[0] == "partitions":
		return fmt.Errorf("%w: namespace %q at %s has had %s partitions, and nodes that know it still go by that; move it with %s partitions, or under another Redis database",
			ledger.ErrRefused, r.Namespace, where, reply[1], reply[1])
	}
	return fmt.Errorf("%w: a namespace %q is at %s already (%s) and a move fills an empty one only; `move status` shows both sides, or name another Redis",
		ledger.ErrRefused, r.Namespace, where, cmp.Or(reply[1], "no move has brought it"))
}

// Step is a change of a control record's note of a move.
type Step struct {
	ID   string `json:"id"`
	Role string `json:"role"` // MoveFrom or MoveTo
	Peer string `json:"peer"` // address of the other side
	// State is the next state; MoveUndone removes the note.
	State string `json:"state"`
	// Own are the states of this move that it may follow; Older are those, "role/state", of an
	// older one, and "none".
	Own   []string `json:"own,omitempty"`
	Older []string `json:"older,omitempty"`
	// Count counts one more copy.
	Count bool `json:"count"`
	// Copies is how many copies there must have been; 0 for any.
	Copies int64 `json:"copies,string,omitempty"`
	// Fields are set in the control record as well.
	Fields map[string]string `json:"fields,omitempty"`
}

// MoveUndone is the State of a Step that takes the note of a move away, and remembers its id:
// nothing of that move is carried out from then on.
const MoveUndone = "undone"

// Advance carries out a step that the noted state allows, and waits for replicas as SetGate does;
// it may be repeated. It returns the number of copies that were begun, ErrRefused for a step that
// does not fit, and locking.ErrUnreachable when replicas lag behind.
func Advance(ctx context.Context, l *ledger.Ledger, s Step) (copies int64, err error) {
	s.Peer = ledger.Plain(s.Peer)
	op := fmt.Sprintf("note %s in the control record of %s at %s", s.State, l.Config.Namespace, redisconn.Addr(l.Client))
	got, err := runEverywhere(ctx, l, advanceScript, ledger.NamespaceTag(l.Config.Namespace), s)
	if err != nil {
		return 0, redisconn.Classify(op, err)
	}
	reply, _ := got.([]any)
	if len(reply) != 3 {
		return 0, fmt.Errorf("%s: %d answers", op, len(reply))
	}
	copies, _ = reply[2].(int64)
	switch word := ledger.Text(reply[0]); word {
	case "done":
		return copies, nil
	case "promoting":
		return 0, fmt.Errorf("%w: %s: a promotion goes on; finish it with `generations promote`, then seal", ledger.ErrRefused, op)
	case "gone":
		return 0, fmt.Errorf("%s: %w: its control record was lost; run `move abort`", op, ledger.ErrNoNamespace)
	default:
		return 0, fmt.Errorf("%w: %s: %q is noted there; `move status` shows the next step", ledger.ErrRefused, op, ledger.Text(reply[1]))
	}
}

// Drains reads the names that are drained, with the roster's records of them.
func Drains(ctx context.Context, l *ledger.Ledger) (map[string]string, error) {
	got, err := l.Client.HGetAll(ctx, drainsKey(l.Config.Namespace)).Result()
	return got, redisconn.Classify("read the drains", err)
}

type drainsArgs struct {
	ID     string            `json:"id"` // of the move
	State  string            `json:"state"`
	Drains map[string]string `json:"drains,omitempty"`
}

// SetDrains replaces the drained names of a namespace in which the move is in this state; it
// returns ErrRefused in another.
func SetDrains(ctx context.Context, l *ledger.Ledger, id, state string, drains map[string]string) error {
	args := drainsArgs{id, state, drains}
	word, err := drainsScript.Call(ctx, l.Client, ledger.NamespaceTag(l.Config.Namespace), "", args).Text()
	if err != nil {
		return redisconn.Classify("copy the drains", err)
	}
	if word != "done" {
		return fmt.Errorf("%w: copy the drains: %q is noted there; `move status` shows the next step", ledger.ErrRefused, word)
	}
	return nil
}

// GateStep takes gates from one state to another for one step of a move.
type GateStep struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Words string `json:"words"` // for people: where the jobs are
	// Own are the states of this move that the step may follow; Older are an older move's states,
	// and "none" for no gate.
	Own   []string `json:"own,omitempty"`
	Older []string `json:"older,omitempty"`
	// Turn sets the epoch and the generation as well.
	Turn       bool   `json:"turn"`
	Epoch      int64  `json:"epoch,string"`
	Generation string `json:"generation"`
	// Copy is the number of the copies that were ended last; 0 for any.
	Copy int64 `json:"copy,string,omitempty"`
}

// SetGate carries out a step at one partition, and waits at most 2 s until every replica of the
// partition's server has it. It may be repeated. It returns ErrRefused for a gate in another state,
// and locking.ErrUnreachable when replicas lag behind.
func SetGate(ctx context.Context, l *ledger.Ledger, partition int, s GateStep) error {
	s.Words = ledger.Plain(s.Words)
	op := fmt.Sprintf("set the gate of partition %d at %s to %s", partition, redisconn.Addr(l.Client), s.State)
	reply, err := runEverywhere(ctx, l, gateScript, l.Keys[partition].Tag, s)
	word := ledger.Text(reply)
	switch {
	case err != nil:
		return redisconn.Classify(op, err)
	case word == "done":
		return nil
	case word == "full":
		return fmt.Errorf("%w: %s: jobs lie there already", ledger.ErrRefused, op)
	case word == "foreign":
		return fmt.Errorf("%s: %w", op, ledger.ErrUnknownFormat)
	}
	return fmt.Errorf("%w: %s: it is %q; `move status` shows the next step", ledger.ErrRefused, op, word)
}

// sealWait is how long a step waits for replicas.
const sealWait = 2 * time.Second

// runEverywhere runs a script and waits until every present replica of the master has its writes.
// The script's answer begins with the word done if it wrote anything.
func runEverywhere(ctx context.Context, l *ledger.Ledger, s *ledger.Script, tag string, args any) (any, error) {
	keys := s.In(tag, "")
	master, err := redisconn.Master(ctx, l.Client, keys[0])
	if err != nil {
		return nil, err
	}
	replicas, err := redisconn.Replicas(ctx, master)
	var refused redis.Error // by a service that hides its replicas
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	cmd, copies, unknown := s.RunAndWait(ctx, master, redisconn.Wait{Replicas: replicas, Most: sealWait}, keys, ledger.Encoded(args))
	reply, err := cmd.Result()
	word := reply
	if list, ok := reply.([]any); ok && len(list) > 0 {
		word = list[0]
	}
	switch {
	case err != nil:
		return reply, err
	case unknown != nil:
		return reply, unknown
	case ledger.Text(word) == "done" && copies < replicas:
		return reply, fmt.Errorf("%w: done, but only %d of %d replicas have it; run the step again", locking.ErrUnreachable, copies, replicas)
	}
	return reply, nil
}

// BeginCopy sees to it that nothing is written any more in a partition of copies before this
// number.
func BeginCopy(ctx context.Context, l *ledger.Ledger, p int, id string, number int64) error {
	op := fmt.Sprintf("begin copy %d in partition %d at %s", number, p, redisconn.Addr(l.Client))
	word, err := copyScript.Run(ctx, l.Client, []string{l.Keys[p].Gate}, id, ledger.Spell(number)).Text()
	if err != nil {
		return redisconn.Classify(op, err)
	}
	return importRefusal(op, word)
}

// importRefusal is the error for a word of copy.lua or import.lua.
func importRefusal(op, word string) error {
	switch word {
	case "done":
		return nil
	case "stale":
		return fmt.Errorf("%w: %s: another copy has begun meanwhile; let one of them end, then run `move copy` again", ledger.ErrRefused, op)
	}
	return fmt.Errorf("%w: %s: its gate is %q, so the move does not fill it; `move status` shows the next step", ledger.ErrRefused, op, word)
}

var wipeScript = ledger.Ship("export/wipe", nil)

// wipeKeys is how many keys one call deletes.
const wipeKeys = 1000

// Wipe deletes everything in the partitions whose gates are in this state, and had this move last,
// but for the gates. It returns ErrRefused at another gate.
func Wipe(ctx context.Context, l *ledger.Ledger, id, state string) error {
	for p := range l.Keys {
		if err := WipePartition(ctx, l, p, id, state, ""); err != nil {
			return err
		}
	}
	return nil
}

// WipePartition is Wipe for one partition, with the number of the copy that must have begun last, ""
// for any. The histories leave before the jobs that name them.
func WipePartition(ctx context.Context, l *ledger.Ledger, p int, id, state, number string) error {
	k := l.Keys[p]
	names, err := l.Client.HKeys(ctx, k.Jobs).Result()
	if err != nil {
		return redisconn.Classify("look what is in the partition", err)
	}
	var gone []string
	for _, name := range names {
		gone = append(gone, k.History+name)
	}
	gone = append(gone, slices.DeleteFunc(k.All(), func(key string) bool { return key == k.Gate })...)
	for some := range slices.Chunk(gone, wipeKeys) {
		word, err := wipeScript.Run(ctx, l.Client, append([]string{k.Gate}, some...), state, id, number).Text()
		if err != nil {
			return redisconn.Classify("wipe", err)
		}
		if word != "done" {
			return fmt.Errorf("%w: wipe partition %d at %s: its gate is %q; `move status` shows the next step", ledger.ErrRefused, p, redisconn.Addr(l.Client), word)
		}
	}
	return nil
}
