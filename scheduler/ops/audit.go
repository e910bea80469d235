package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// Actor is the person who operates a namespace, for the audit.
type Actor struct {
	Name   string // at most 64 bytes are kept; default "unknown"
	Via    string // the means: "cli", "api", "console"
	Reason string // of actions whose options have none; at most 256 bytes are kept
}

// As returns a client for a person: its changes are noted in the audit, see Audit. What a program
// changes with a client of its own is not: it may trigger a thousand runs a minute, and would push
// people's actions out. Over HTTP the server identifies the caller; the name counts where the
// server lets everyone in.
func (c *Client) As(a Actor) *Client {
	of := *c
	of.actor = &a
	if c.conn != nil {
		conn := *c.conn
		conn.actor, of.conn = &a, &conn
	}
	return &of
}

// who is the client's actor.
func (c *Client) who() Actor {
	if c.actor == nil {
		return Actor{}
	}
	return *c.actor
}

// by is the author and the reason of an act: from the options, else from the client's actor.
func (c *conn) by(author, reason string) (string, string) {
	if c.actor == nil {
		return author, reason
	}
	return cmp.Or(author, c.actor.Name), cmp.Or(reason, c.actor.Reason)
}

func author(s string) string { return cmp.Or(wire.OneLine(s), unknownAuthor) }

// unknownAuthor is the default author.
const unknownAuthor = "unknown"

// utf8Only refuses an author or a reason that would be kept otherwise than it was given.
func utf8Only(op, author, reason string) error {
	switch {
	case !utf8.ValidString(author):
		return fmt.Errorf("%w: %s: the author %+.64q is not valid UTF-8", ErrRefused, op, author)
	case !utf8.ValidString(reason):
		return fmt.Errorf("%w: %s: the reason %+.256q is not valid UTF-8", ErrRefused, op, reason)
	}
	return nil
}

// ErrNotAudited is returned when an action was carried out, and could not be noted in the audit.
// The method's result is valid.
var ErrNotAudited = errors.New("it is done, but is not in the audit")

// ActionView is an operator's act, done or refused, as tools and the API show it. See Encode for its JSON.
type ActionView struct {
	At     time.Time `json:"at"`
	Who    string    `json:"who"`
	Via    string    `json:"via"`    // cli, api or console
	Action string    `json:"action"` // in the words of the command: "jobs pause"
	Target string    `json:"target"` // the job, run, node, lock, generation or file
	Reason string    `json:"reason"`
	Detail string    `json:"detail"` // the options, in words
	Error  string    `json:"error"`  // why it was not carried out; "" when it was
}

// ActionFilter restricts Audit; zero fields do not.
type ActionFilter struct {
	Since time.Time `query:"since"`                                  // only actions since this instant
	Who   string    `query:"who"`                                    // only actions of this name
	Limit int       `query:"limit" default:"100" min:"1" max:"1000"` // how many at most; 0 is all
	After string    `query:"after"`                                  // the page begins behind this place: Next of the page before
}

var rowAudit = read("audit", "what operators did, the newest first", listActions)

// Audit lists operators' acts, the newest first. The namespace keeps the last 2,000 actions. It
// returns ErrUnknownNamespace, and ErrRefused for a negative limit and an After that is no place.
func (c *Client) Audit(ctx context.Context, f ActionFilter) (Page[ActionView], error) {
	return call(ctx, c, rowAudit, f)
}

func listActions(ctx context.Context, c *conn, f ActionFilter) (Page[ActionView], error) {
	before, err := placeOf(f.After)
	if err != nil {
		return Page[ActionView]{}, err
	}
	l, err := c.Open(ctx)
	if err != nil {
		return Page[ActionView]{}, err
	}
	all, foreign, err := operate.Actions(ctx, l)
	if err != nil {
		return Page[ActionView]{}, err
	}
	list := Page[ActionView]{Items: []ActionView{}, UnknownFormat: foreign}
	place := auditPlace{}
	for _, a := range all {
		place = place.next(a.At)
		if !before.before(place) || f.Who != "" && a.Author != f.Who || !f.Since.IsZero() && a.At < f.Since.UnixMilli() {
			continue
		}
		if f.Limit > 0 && len(list.Items) == f.Limit {
			list.Next = before.String()
			return list, nil
		}
		list.Items = append(list.Items, actionView(a))
		before = place
	}
	return list, nil
}

// auditPlace is a place in the audit: a time, and how many rows of that time come up to it, newest
// first.
type auditPlace struct {
	at int64
	n  int
}

func (p auditPlace) next(at int64) auditPlace {
	if at == p.at {
		return auditPlace{at, p.n + 1}
	}
	return auditPlace{at, 1}
}

// before reports whether a place is the zero one or lies before another.
func (p auditPlace) before(o auditPlace) bool {
	return p == auditPlace{} || o.at < p.at || o.at == p.at && o.n > p.n
}

func (p auditPlace) String() string { return fmt.Sprintf("%d-%d", p.at, p.n) }

func placeOf(text string) (p auditPlace, err error) {
	if text == "" {
		return p, nil
	}
	if n, err := fmt.Sscanf(text, "%d-%d", &p.at, &p.n); err != nil || n != 2 || p.String() != text {
		return p, fmt.Errorf("%w: list the audit: %q is not where a page ended", ErrRefused, text)
	}
	return p, nil
}

func actionView(a operate.Action) ActionView {
	return ActionView{
		At: timeOf(a.At), Who: a.Author, Via: a.Via, Action: a.Name, Target: a.Target, Reason: a.Reason, Detail: a.Detail, Error: a.Error,
	}
}

// Action is a client's act, for Note.
type Action struct {
	Name   string // in the words of the command: "move seal"
	Target string
	Author string // default: the actor's name
	Reason string // default: the actor's
	Detail string
}

// Note notes in the audit an action by other means than a method of the client: its result is nil,
// or why it was not carried out. It returns the result, or ErrNotAudited. A client without an actor
// notes nothing, and no client notes an action that failed because Redis did not answer.
func (c *Client) Note(ctx context.Context, a Action, result error) error {
	switch {
	case c.actor == nil, c.conn == nil, errors.Is(result, ErrUnknownNamespace), errors.Is(result, locking.ErrUnreachable):
		return result
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	note := operate.Action{
		Author: author(cmp.Or(a.Author, c.actor.Name)), Via: c.actor.Via, Name: a.Name, Target: a.Target, Reason: wire.OneLine(cmp.Or(a.Reason, c.actor.Reason)), Detail: a.Detail,
	}
	if result != nil {
		note.Error = wire.OneLine(strings.TrimPrefix(result.Error(), ErrRefused.Error()+": "))
	}
	l, err := c.conn.Open(ctx)
	if err == nil {
		err = operate.Audit(ctx, l, note)
	}
	if err != nil && result == nil && !errors.Is(err, ErrUnknownNamespace) { // locks need no namespace, which has no audit then
		return fmt.Errorf("%w: %w", ErrNotAudited, err)
	}
	return result
}

// noteTimeout bounds how long an action waits for its note.
const noteTimeout = 5 * time.Second
