package ops

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// Role is what the caller of an operation may do over HTTP.
type Role int

// The roles. Each one includes the roles before it.
const (
	Nobody   Role = iota
	Viewer        // may read
	Operator      // may change: run, pause, cancel, drain, release, promote
)

// String is the role's name in a configuration.
func (r Role) String() string { return [...]string{"nobody", "viewer", "operator"}[r] }

// ParseRole reads the name of a role in a configuration; false for any other text.
func ParseRole(name string) (Role, bool) {
	switch name {
	case "viewer":
		return Viewer, true
	case "operator":
		return Operator, true
	}
	return Nobody, false
}

// Info describes an operation.
type Info struct {
	Method, Path string // of HTTP, below /api/v1: "POST", "jobs/{name}/pause"
	Role         Role   // the least that may
	Summary      string
	Audit        string // the name of its rows in the audit, in the words of the command; "" for none
	Long         bool   // reads much of Redis: up to two minutes
}

// Operation is one row of the table of operations: an action on a namespace, with its input and
// output. The tags of In place each field in a request, see package wire. The Go client, the HTTP
// server and client, the audit and openapi.json use the row.
type Operation[In, Out any] struct {
	Info
	// do carries the operation out on Redis.
	do func(context.Context, *conn, In) (Out, error)
	// note is the row of the audit, but for its name.
	note func(In, Out) Action
	// dry reports whether the input is for a dry run. No row is noted then.
	dry func(In) bool
}

// None is the output of an operation that has none.
type None struct{}

// Row is an operation without its types, for the HTTP server and client.
type Row interface {
	About() Info
	// New returns pointers to an empty input and an empty output.
	New() (in, out any)
	// Call carries the operation out with an input of New.
	Call(ctx context.Context, c *Client, in any) (out any, err error)
	// Refuse notes in the audit why a request was not carried out, with the readable part of its
	// input, and returns the reason.
	Refuse(ctx context.Context, c *Client, in any, reason error) error
}

// table has each row of the package.
var table []Row

// row adds an operation to the table.
func row[In, Out any](o *Operation[In, Out]) *Operation[In, Out] {
	table = append(table, o)
	return o
}

// Operations returns the table of all operations, in the order of their paths.
func Operations() []Row {
	return slices.SortedFunc(slices.Values(table), func(a, b Row) int {
		x, y := a.About(), b.About()
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Method, y.Method))
	})
}

// About describes the operation.
func (o *Operation[In, Out]) About() Info { return o.Info }

// New returns pointers to an empty input and an empty output.
func (o *Operation[In, Out]) New() (in, out any) { return new(In), new(Out) }

// Call carries the operation out with an input of New, and returns a pointer to the output.
func (o *Operation[In, Out]) Call(ctx context.Context, c *Client, in any) (any, error) {
	out, err := call(ctx, c, o, *in.(*In))
	return &out, err
}

// Refuse notes in the audit why a request was not carried out, and returns the reason.
func (o *Operation[In, Out]) Refuse(ctx context.Context, c *Client, in any, reason error) error {
	var none Out
	return o.audited(ctx, c, *in.(*In), none, reason)
}

// Remote carries operations out elsewhere: package opshttp has one. Do fills in the output, which
// may be valid also with an error, as on Redis.
type Remote interface {
	Do(ctx context.Context, by Actor, o Row, in, out any) error
}

// call carries an operation out, and notes it in the audit where the client has an actor.
func call[In, Out any](ctx context.Context, c *Client, o *Operation[In, Out], in In) (out Out, err error) {
	_, paged := any(&out).(Listing)
	switch err = wire.CheckNumbers(&in, paged); {
	case err != nil:
		err = &InputError{o.Path + ": " + err.Error()}
	case c.remote != nil:
		err = c.remote.Do(ctx, c.who(), o, &in, &out)
	default:
		out, err = o.do(ctx, c.conn, in)
	}
	return out, o.audited(ctx, c, in, out, err)
}

// audited notes a result in the audit, and returns it.
func (o *Operation[In, Out]) audited(ctx context.Context, c *Client, in In, out Out, result error) error {
	if o.note == nil || o.dry != nil && o.dry(in) {
		return result
	}
	a := o.note(in, out)
	a.Name = o.Audit
	return c.Note(ctx, a, result)
}

// read makes the row of an operation that changes nothing.
func read[In, Out any](path, summary string, do func(context.Context, *conn, In) (Out, error)) *Operation[In, Out] {
	return row(&Operation[In, Out]{Info: Info{Method: "GET", Path: path, Role: Viewer, Summary: summary}, do: do})
}

// slow marks an operation that reads much of Redis.
func (o *Operation[In, Out]) slow() *Operation[In, Out] {
	o.Long = true
	return o
}

// plain is a function without an input, for a row.
func plain[Out any](f func(context.Context, *conn) (Out, error)) func(context.Context, *conn, None) (Out, error) {
	return func(ctx context.Context, c *conn, _ None) (Out, error) { return f(ctx, c) }
}

// byName is a function of a name, for a row.
func byName[Out any](f func(context.Context, *conn, string) (Out, error)) func(context.Context, *conn, named) (Out, error) {
	return func(ctx context.Context, c *conn, in named) (Out, error) { return f(ctx, c, in.Name) }
}

// done is the result of an operation without an output.
func done(err error) (None, error) { return None{}, err }

// named names a job or the name of nodes.
type named struct {
	Name string `path:"name"`
}

// why is the body of an action that takes no more than a reason.
type why struct {
	named
	Reason string `json:"reason,omitempty"`
}

type matchIn struct {
	Match string `query:"q"` // a part of the name, in any case of letters
}

// matches reports whether a name has a part, in any case of letters.
func matches(name, part string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(part))
}

// Page is a part of a list.
type Page[T any] struct {
	Items         []T
	Next          string // After of the next page; "" for the last one
	UnknownFormat int    // rows that this version cannot read
}

func (p Page[T]) items() any { return p.Items }

// Listing is a Page without its type.
type Listing interface {
	// Part returns pointers to the fields of the page.
	Part() (items any, next *string, unknown *int)
}

// Part returns pointers to the fields of the page.
func (p *Page[T]) Part() (items any, next *string, unknown *int) {
	return &p.Items, &p.Next, &p.UnknownFormat
}

// Names are the first names of a list, in order.
type Names struct {
	Count int      `json:"count"`
	First []string `json:"first"` // 20 at most
}

// namesMost bounds Names.First.
const namesMost = 20

func namesOf(all []string) Names {
	return Names{Count: len(all), First: append([]string{}, first(all)...)}
}

func first(names []string) []string { return names[:min(len(names), namesMost)] }

// InputError is returned for an input that no namespace would take. It wraps ErrRefused.
type InputError struct{ Text string }

// Error returns the text.
func (e *InputError) Error() string { return e.Text }

// Unwrap returns ErrRefused.
func (e *InputError) Unwrap() error { return ErrRefused }

// ErrTooMany is returned when a server has too many requests of that kind; repeat the request in a
// few seconds.
var ErrTooMany = &tooManyError{}

type tooManyError struct{}

func (*tooManyError) Error() string { return "too many requests" }
func (*tooManyError) Unwrap() error { return ErrRefused }
