package opshttp

import (
	"reflect"

	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// ClientConfig configures a Client. The zero value is for an open server.
type ClientConfig struct {
	Token          string // a bearer token
	User, Password string // of basic authentication, where there is no token
	HTTP           *http.Client
}

// remote carries operations out over the API of a node.
type remote struct {
	base string
	cfg  ClientConfig
}

// NewClient makes a client of a node's API. The address is the node's, such as
// http://10.0.0.7:8080, with a path where the API is mounted below one. NewClient sends nothing.
// Client.As sets the author on an open server.
func NewClient(address string, cfg ClientConfig) (*ops.Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("API address %q: it must be such as http://10.0.0.7:8080, of a node's http.listen", ShowAddress(address))
	}
	if p, set := u.User.Password(); set && cfg.Password == "" {
		cfg.User, cfg.Password = u.User.Username(), p
	}
	u.User = nil
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: longTimeout}
	}
	return ops.NewRemote(&remote{base: strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), strings.TrimSuffix(Prefix, "/")) + Prefix, cfg: cfg}), nil
}

// ShowAddress returns an address for messages: "***" where a part of it may be a password or a key.
func ShowAddress(address string) string {
	if strings.ContainsAny(address, "@?#") {
		return "***"
	}
	return address
}

// ErrAccess is returned when the server does not let the client in, or its role may not do that.
var ErrAccess = errors.New("the API does not permit it")

// answerMost bounds an answer, in bytes: several times the size of a list of 100,000 jobs.
const answerMost = 256 << 20

// Do sends the request of an operation, and reads the answer into out. Of a list it reads pages
// until there are limit items, 0 for all.
func (c *remote) Do(ctx context.Context, by ops.Actor, o ops.Row, in, out any) error {
	about := o.About()
	path, q, body, err := unbind(about.Path, in)
	if err != nil {
		return fmt.Errorf("%s %s: %w", about.Method, path, err)
	}
	if list, is := out.(ops.Listing); is {
		items, next, _ := list.Part()
		*next, err = c.pages(ctx, by, path, q, items)
		return err
	}
	if about.Method == http.MethodGet || about.Method == http.MethodDelete {
		body = nil
	}
	_, err = c.do(ctx, by, about.Method, path, q, body, out)
	return err
}

// do sends a request and reads the answer into a value. next is where the next page of a list
// begins.
func (c *remote) do(ctx context.Context, by ops.Actor, method, path string, q url.Values, body, into any) (next string, err error) {
	var reader io.Reader
	if body != nil {
		text, err := ops.Encode(body)
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", method, path, err)
		}
		reader = bytes.NewReader(text)
	}
	address := c.base + path
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return "", err
	}
	c.sign(req, by)
	resp, err := c.cfg.HTTP.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", c.silent(bare(err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerMost+1))
	if err != nil {
		return "", c.silent(err)
	}
	if len(text) > answerMost {
		return "", fmt.Errorf("the API at %s answers with more than %d MiB; ask for less at once", c.base, answerMost>>20)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return "", c.refusal(resp, text)
	}
	var unread error
	if resp.StatusCode != http.StatusNoContent {
		if unread = ops.Decode(text, into); unread != nil && !errors.Is(unread, ops.ErrUnknownFormat) {
			return "", c.stranger(resp)
		}
	}
	next = unescaped(resp.Header.Get(NextHeader))
	if left := unescaped(resp.Header.Get(IncompleteHeader)); left != "" {
		return next, errors.Join(unread, lacksOf(left, resp.Header.Get(UnreadableHeader) != ""))
	}
	if warning := unescaped(resp.Header.Get(WarningHeader)); warning != "" {
		return next, fmt.Errorf("%w%s", ops.ErrNotAudited, strings.TrimPrefix(warning, ops.ErrNotAudited.Error()))
	}
	return next, unread
}

// silent is the error of a node that gave no answer.
func (c *remote) silent(err error) error {
	words := fmt.Sprintf("the API at %s does not answer: %v; is that a node's http.listen, with http or https as it speaks, and does the node run?", c.base, err)
	return &remoteError{words, errors.Join(locking.ErrUnreachable, err)}
}

func (c *remote) sign(req *http.Request, by ops.Actor) {
	if req.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	switch {
	case c.cfg.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	case c.cfg.Password != "":
		req.SetBasicAuth(c.cfg.User, c.cfg.Password)
	}
	for name, value := range map[string]string{AuthorHeader: by.Name, ViaHeader: by.Via, ReasonHeader: wire.OneLine(by.Reason)} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
}

// bare is an error of the HTTP client without method and address, which may hold a payload.
func bare(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

func unescaped(text string) string {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		return text
	}
	return plain
}

// lacksOf is the error for a list's missing part in the server's headers: an UnreachableError, an
// ErrUnknownFormat, or both.
func lacksOf(left string, unreadable bool) error {
	var err error
	if !unreadable || strings.Contains(left, "partitions left out") {
		err = &ops.UnreachableError{Parts: partsOf(left), Err: fmt.Errorf("%w: %s", locking.ErrUnreachable, left)}
	}
	if unreadable {
		err = errors.Join(err, &remoteError{left, ops.ErrUnknownFormat})
	}
	return err
}

// partsOf are as many partitions as a list lacks; the list has no numbers of them.
func partsOf(left string) []int {
	n, _, _ := strings.Cut(left, " ")
	count, _ := strconv.Atoi(n)
	return make([]int, max(1, min(count, 1<<16)))
}

// stranger is the error of an answer that no node of this version gives.
func (c *remote) stranger(resp *http.Response) error {
	return fmt.Errorf("what answers at %s (%s) is no Escapement node, or one of another version: correct the address, or use the node's version of this program", c.base, resp.Status)
}

// refusal is the error of a server's problem details.
func (c *remote) refusal(resp *http.Response, text []byte) error {
	var p problem
	if err := ops.Decode(text, &p); err != nil || p.Code == "" {
		return c.stranger(resp)
	}
	for _, k := range codes {
		if k.code == p.Code {
			return &remoteError{p.Detail, k.err}
		}
	}
	return fmt.Errorf("the API answers %s: %s", resp.Status, p.Detail)
}

// remoteError is an error of the server's with the words that it has there.
type remoteError struct {
	words string
	is    error
}

func (e *remoteError) Error() string { return e.words }
func (e *remoteError) Unwrap() error { return e.is }

// pages reads pages of a list into items, a pointer to a slice; it returns where the next page
// begins.
func (c *remote) pages(ctx context.Context, by ops.Actor, path string, q url.Values, items any) (next string, err error) {
	limit, _ := strconv.Atoi(q.Get("limit")) // 0 without one: all
	all := reflect.ValueOf(items).Elem()
	for next = q.Get("after"); ; {
		size := listMax
		if limit > 0 {
			size = min(size, limit-all.Len())
		}
		q.Set("limit", strconv.Itoa(size))
		if q.Del("after"); next != "" {
			q.Set("after", next)
		}
		some := reflect.New(all.Type())
		after, bad := c.do(ctx, by, http.MethodGet, path, q, nil, some.Interface())
		if all.IsNil() && !some.Elem().IsNil() {
			all.Set(reflect.MakeSlice(all.Type(), 0, some.Elem().Len()))
		}
		all.Set(reflect.AppendSlice(all, some.Elem()))
		next = after
		err = errors.Join(err, unsaid(err, bad))
		if bad != nil && !onlyLacks(bad) || next == "" || limit > 0 && all.Len() >= limit {
			return next, err
		}
	}
}

// listMax is how many items a page has at most.
const listMax = 1000

// unsaid is the error of a further page without the partitions that an earlier one has named: all
// pages lack the same.
func unsaid(before, err error) error {
	if !errors.As(before, new(*ops.UnreachableError)) {
		return err
	}
	_, unreadable, other := ops.Incomplete(err)
	return errors.Join(append(unreadable, other)...)
}
