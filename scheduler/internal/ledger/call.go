package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// Call runs a rarely used script. args is a struct, which lib/args.lua reads as JSON; bytes go
// beside it. The keys belong to a tag and a job, see namedKeys.
func (s *Script) Call(ctx context.Context, client redis.Scripter, tag, job string, args any, bytes ...any) *redis.Cmd {
	return s.Run(ctx, client, s.In(tag, job), append([]any{Encoded(args)}, bytes...)...)
}

// Encoded is a script's arguments in JSON.
func Encoded(args any) string {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err) // texts, numbers and flags are always spelt
	}
	return string(text)
}

// Clocked are the arguments of a script that refuses a caller with a wrong idea of Redis' time, or
// that keeps the times it stores near to that idea.
type Clocked struct {
	Now  int64 `json:"now"`  // ms; 0 for no idea
	Skew int64 `json:"skew"` // tolerated difference, ms
}

// Clocked are these arguments for a caller with this idea of Redis' time, ms.
func (l *Ledger) Clocked(now int64) Clocked { return Clocked{now, l.Config.MaxSkew.Milliseconds()} }

// Timed are the arguments of a script that keeps the times it stores near to the caller's idea of
// Redis' time, see Believing.
func (l *Ledger) Timed(ctx context.Context) Clocked { return l.Clocked(l.Believed(ctx)) }

// Retained are the arguments of a script that writes a history.
type Retained struct {
	Keep    int   `json:"keep"`     // rows
	KeepFor int64 `json:"keep_for"` // age, ms
}

// Retained are these arguments by the ledger's Config.
func (l *Ledger) Retained() Retained { return Retained{l.Config.Keep, l.Config.KeepFor.Milliseconds()} }

// Evaluate calls a script as redisconn.Script's Run does, without an allocation for each key and
// argument.
func Evaluate(ctx context.Context, client redis.UniversalClient, s *Script, keys, args []string) *redis.Cmd {
	cmd := evaluation(ctx, "evalsha", s.Hash(), keys, args)
	_ = client.Process(ctx, cmd) // the command has the error
	if redisconn.UnknownScript(cmd.Err()) {
		cmd = evaluation(ctx, "eval", s.Source(), keys, args)
		_ = client.Process(ctx, cmd) // as above
	}
	return cmd
}

func evaluation(ctx context.Context, name, script string, keys, args []string) *redis.Cmd {
	all := append(make([]any, 0, 3+len(keys)+len(args)), name, script, len(keys))
	cmd := redis.NewCmd(ctx, AppendPlaces(AppendPlaces(all, keys), args)...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// AppendPlaces appends pointers to strings: a string itself would be copied to become an any.
func AppendPlaces(all []any, list []string) []any {
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// Status is the answer to one item of Settle, Reap, Unclaim or Renew.
type Status string

// Words reads a reply of one word per item.
func Words(op string, n int) func([]any, error) ([]Status, error) {
	return func(reply []any, err error) ([]Status, error) {
		if err != nil {
			return nil, redisconn.Classify(op, err)
		}
		if err := Refused(reply, 0); err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		if len(reply) != n {
			return nil, fmt.Errorf("%s: %d answers for %d items", op, len(reply), n)
		}
		out := make([]Status, n)
		for i, w := range reply {
			out[i] = Status(Text(w))
		}
		return out, nil
	}
}

// WordsOf reads a reply of one word per item that are one text, parted by commas; or a refusal.
func WordsOf(op string, n int, cmd *redis.Cmd) ([]Status, error) {
	reply, err := cmd.Result()
	list, isText := reply.(string)
	if err != nil || !isText {
		return Words(op, n)(cmd.Slice())
	}
	out := make([]Status, 0, n)
	for word := range strings.SplitSeq(list, ",") {
		out = append(out, Status(word))
	}
	if len(out) != n {
		return nil, fmt.Errorf("%s: %d answers for %d items", op, len(out), n)
	}
	return out, nil
}

// Refused turns the answers {'clock', redis ms} and {'server', id} into a *ClockError and
// ErrServer.
func Refused(reply []any, now int64) error {
	if len(reply) != 2 {
		return nil
	}
	switch reply[0] {
	case "clock":
		return &ClockError{Redis: time.UnixMilli(Number(reply[1])), Believed: time.UnixMilli(now)}
	case "server":
		return ErrServer
	case "closed":
		return ClosedBy(Text(reply[1]))
	}
	return nil
}

// Text is a text in a reply; "" for any other value.
func Text(v any) string {
	s, _ := v.(string)
	return s
}

// Number is a number in a reply; 0 for any other value.
func Number(v any) int64 {
	s := Text(v)
	if s == "" {
		return 0 // without the error that it would make
	}
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// Texts are the texts of a list in a reply.
func Texts(list any) []string {
	values, _ := list.([]any)
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = Text(v)
	}
	return out
}

// QueueFunc adds a script's call to a pipeline.
type QueueFunc func(context.Context, redis.Pipeliner, []string, ...any) *redis.Cmd

// Ask runs a script for an operator and returns its answer. An answer in no becomes that error; an
// answer that is not in yes is an error too, see refusal.
func (l *Ledger) Ask(ctx context.Context, op, job string, s *Script, yes []Status, no map[Status]error, args any, bytes ...any) (Status, error) {
	word, err := s.Call(ctx, l.Client, l.Tag(job), job, args, bytes...).Text()
	switch {
	case err != nil:
		return "", l.Explain(ctx, op, err)
	case slices.Contains(yes, Status(word)):
		return Status(word), nil
	case no[Status(word)] != nil:
		return "", no[Status(word)]
	}
	return "", l.Refusal(op, job, word)
}

// Refusal is the error for a script's answer that refuses an operator's request.
func (l *Ledger) Refusal(op, job, word string) error {
	if shut, ok := strings.CutPrefix(word, "closed|"); ok {
		return fmt.Errorf("%s: %w", op, ClosedBy(shut))
	}
	switch word {
	case "unknown":
		return fmt.Errorf("%w: %q in namespace %s; `jobs list` shows what there is", ErrUnknownJob, job, l.Config.Namespace)
	case "full":
		return fmt.Errorf("%w: %s: %d runs wait already beside this job; is a node running that holds it?", ErrRefused, op, PendingMax)
	case "unique full":
		return fmt.Errorf("%w: %s: %d unique keys are remembered already beside this job; use fewer, or a shorter history", ErrRefused, op, UniqueMax)
	case "foreign":
		return fmt.Errorf("%s: %w", op, ErrUnknownFormat)
	default:
		return fmt.Errorf("%s: answer %q: not one this version knows", op, word)
	}
}

// Member is the text of a sorted set's member.
func Member(z redis.Z) string {
	s, _ := z.Member.(string)
	return s
}

// Answers that several calls have.
const (
	Lost                Status = "lost"    // another node ended the run first
	NoSuchRun           Status = "unknown" // no record of this run any more
	StatusUnknownFormat Status = "foreign" // a record that this version cannot read
)
