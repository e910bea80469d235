package opshttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
)

// ClientConfig configures a Client. The zero value is for a server that lets everybody in.
type ClientConfig struct {
	Token          string // a bearer token
	User, Password string // of basic authentication, where there is no token
	Author         string // who it is, where nobody needs to prove it
	Via            string // cli or console, for the audit
	Reason         string // of actions whose options have none, for the audit
	HTTP           *http.Client
}

// Client reads and operates a namespace over the API of one of its nodes, with the methods of ops.Client and their errors. It is
// safe for concurrent use.
type Client struct {
	base string
	cfg  ClientConfig
}

// NewClient makes a client of a node's API. The address is that of the node, such as http://10.0.0.7:8080, with a path where the
// API is mounted below one. NewClient sends nothing.
func NewClient(address string, cfg ClientConfig) (*Client, error) {
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
	return &Client{base: strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), strings.TrimSuffix(Prefix, "/")) + Prefix, cfg: cfg}, nil
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

// answerMost bounds what is read of an answer, in bytes: several times what a list of 100,000 jobs
// takes.
const answerMost = 256 << 20

// errTooMany is returned when a server has too many requests of that kind.
var errTooMany = fmt.Errorf("%w: too many requests", ops.ErrRefused)

// said is what an answer said beside its body.
type said struct{ next string }

// do sends a request and reads the answer into a value, nil for none.
func (c *Client) do(ctx context.Context, method, path string, q url.Values, body, into any) (said, error) {
	var of said
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return of, fmt.Errorf("%s %s: %w", method, path, err)
		}
		reader = bytes.NewReader(text)
	}
	address := c.base + path
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return of, err
	}
	c.sign(req)
	resp, err := c.cfg.HTTP.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return of, ctx.Err()
		}
		return of, c.silent(bare(err))
	}
	defer resp.Body.Close()
	of.next = unescaped(resp.Header.Get(NextHeader))
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerMost+1))
	if err != nil {
		return of, c.silent(err)
	}
	if len(text) > answerMost {
		return of, fmt.Errorf("the API at %s answers with more than %d MiB; ask for less at once", c.base, answerMost>>20)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return of, c.refusal(resp, text)
	}
	if into != nil && resp.StatusCode != http.StatusNoContent {
		if err := json.Unmarshal(text, into); err != nil {
			return of, c.stranger(resp)
		}
	}
	if left := unescaped(resp.Header.Get(IncompleteHeader)); left != "" {
		return of, lacksOf(left, resp.Header.Get(UnreadableHeader) != "")
	}
	if warning := unescaped(resp.Header.Get(WarningHeader)); warning != "" {
		return of, fmt.Errorf("%w%s", ops.ErrNotAudited, strings.TrimPrefix(warning, ops.ErrNotAudited.Error()))
	}
	return of, nil
}

// silent is the error of a node that gave no answer.
func (c *Client) silent(err error) error {
	words := fmt.Sprintf("the API at %s does not answer: %v; is that a node's http.listen, with http or https as it speaks, and does the node run?", c.base, err)
	return &remoteError{words, errors.Join(locking.ErrUnreachable, err)}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (c *Client) sign(req *http.Request) {
	if req.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	switch {
	case c.cfg.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	case c.cfg.Password != "":
		req.SetBasicAuth(c.cfg.User, c.cfg.Password)
	}
	for name, value := range map[string]string{AuthorHeader: c.cfg.Author, ViaHeader: c.cfg.Via, ReasonHeader: oneLine(c.cfg.Reason)} {
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

// lacksOf is what a list lacks, as the server has noted it: an UnreachableError, an ErrUnknownFormat, or both.
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

// partsOf are so many partitions as a list says it lacks; which ones it does not say.
func partsOf(left string) []int {
	n, _, _ := strings.Cut(left, " ")
	count, _ := strconv.Atoi(n)
	return make([]int, max(1, min(count, 1<<16)))
}

// stranger is the error of an answer that no node of this version gives.
func (c *Client) stranger(resp *http.Response) error {
	return fmt.Errorf("what answers at %s (%s) is no Escapement node, or one of another version: correct the address, or use the node's version of this program", c.base, resp.Status)
}

// refusal is the error that a server's problem details stand for.
func (c *Client) refusal(resp *http.Response, text []byte) error {
	var p problem
	if err := json.Unmarshal(text, &p); err != nil || p.Code == "" {
		return c.stranger(resp)
	}
	for _, k := range known {
		if k.code == p.Code {
			return &remoteError{p.Detail, k.err}
		}
	}
	switch p.Code {
	case "unauthorized", "forbidden", "cross_origin":
		return &remoteError{p.Detail, ErrAccess}
	case "too_many":
		return &remoteError{p.Detail, errTooMany}
	case "bad_request", "too_large", "unsupported_media_type":
		return &remoteError{p.Detail, ops.ErrRefused}
	case "timeout":
		return &remoteError{p.Detail, locking.ErrUnreachable}
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

// seg is a name as a part of a path.
func seg(name string) string { return url.PathEscape(name) }

// parameters are those that are not empty; names and values alternate.
func parameters(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// pages reads pages of a list until there are limit items, 0 for all; it returns where the next one begins.
func pages[T any](ctx context.Context, c *Client, path string, q url.Values, after string, limit int) (all []T, next string, err error) {
	for next = after; ; {
		size := listMax
		if limit > 0 {
			size = min(size, limit-len(all))
		}
		q.Set("limit", strconv.Itoa(size))
		if q.Del("after"); next != "" {
			q.Set("after", next)
		}
		var some []T
		of, bad := c.do(ctx, http.MethodGet, path, q, nil, &some)
		if all == nil && some != nil {
			all = []T{}
		}
		all, next = append(all, some...), of.next
		err = errors.Join(err, unsaid(err, bad))
		if bad != nil && !onlyLacks(bad) || next == "" || limit > 0 && len(all) >= limit {
			return all, next, err
		}
	}
}

// unsaid is the error of a further page without the partitions that an earlier one has named: all pages lack the same.
func unsaid(before, err error) error {
	if !errors.As(before, new(*ops.UnreachableError)) {
		return err
	}
	_, unreadable, other := Lacks(err)
	return errors.Join(append(unreadable, other)...)
}
