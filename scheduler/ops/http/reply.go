package opshttp

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/internal/httpbody"
	"github.com/escapement/escapement/scheduler/ops"
)

// Headers of an answer.
const (
	// NextHeader is after of the next page of a list; it is not there on the last page. Link has the whole address.
	NextHeader = "Escapement-Next"
	// IncompleteHeader says what a list lacks, and why.
	IncompleteHeader = "Escapement-Incomplete"
	// UnreadableHeader is how many records a list lacks because this version cannot read them; IncompleteHeader names the first.
	UnreadableHeader = "Escapement-Unreadable"
	// WarningHeader says what else is to be known of what was done, such as that it is not in the audit.
	WarningHeader = "Escapement-Warning"
)

// page is a list, or a part of one.
type page struct {
	items any    // a slice
	next  string // after of the next page; "" for the last one
	none  bool   // nothing could be read: an error says why
}

// partial is an object that an error beside it may make less than whole, as a page.
type partial struct{ value any }

// listed is a page of what a method of ops.Client has returned: nil where it could read nothing.
func listed[T any](list []T, next string) page { return page{some(list), next, list == nil} }

// reply shows what a call has answered. An error beside a list says what it lacks.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, value any, err error) {
	if p, list := value.(page); list {
		value = p.items
		if p.next != "" {
			q := r.URL.Query()
			q.Set("after", p.next)
			w.Header().Set(NextHeader, url.QueryEscape(p.next))
			w.Header().Set("Link", fmt.Sprintf("<?%s>; rel=\"next\"", q.Encode()))
		}
		if !p.none {
			err = noteLacks(w.Header(), err)
		}
	}
	if p, is := value.(partial); is {
		value, err = p.value, noteLacks(w.Header(), err)
	}
	if errors.Is(err, ops.ErrNotAudited) {
		w.Header().Set(WarningHeader, url.QueryEscape(err.Error()))
		err = nil
	}
	if err != nil {
		writeProblem(w, s.problemOf(r, err))
		return
	}
	if value == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if plain, is := value.(text); is {
		writeBody(w, r, "text/plain; charset=utf-8", []byte(plain))
		return
	}
	body, err := json.Marshal(value)
	if err != nil {
		writeProblem(w, s.problemOf(r, err))
		return
	}
	writeBody(w, r, "application/json", append(body, '\n'))
}

// Lacks splits the error beside a list: partitions whose masters do not answer, records that this version cannot read, and what else is
// wrong.
func Lacks(err error) (parts, unreadable []error, other error) {
	var others []error
	for _, e := range Causes(err) {
		if errors.As(e, new(*ops.UnreachableError)) {
			parts = append(parts, e)
			continue
		}
		//guard:list-whole P8 one record that cannot be read does not hide the others
		if errors.Is(e, ops.ErrUnknownFormat) {
			unreadable = append(unreadable, e)
			continue
		}
		others = append(others, e)
	}
	return parts, unreadable, errors.Join(others...)
}

// Causes are the errors that were joined into one. What an error is wrapped around stays within it.
func Causes(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Causes(e)...)
	}
	return all
}

// lacksNamed is how many records that cannot be read are named: proxies bound the size of headers.
const lacksNamed = 5

// noteLacks notes in the headers what a list lacks. It returns what else is wrong.
func noteLacks(h http.Header, err error) error {
	parts, unreadable, other := Lacks(err)
	if other != nil {
		return other
	}
	if len(unreadable) > 0 {
		h.Set(UnreadableHeader, strconv.Itoa(len(unreadable)))
	}
	var notes []string
	for _, e := range append(parts, unreadable[:min(len(unreadable), lacksNamed)]...) {
		notes = append(notes, e.Error())
	}
	if rest := len(unreadable) - lacksNamed; rest > 0 {
		notes = append(notes, fmt.Sprintf("and %d more", rest))
	}
	if notes != nil {
		h.Set(IncompleteHeader, url.QueryEscape(strings.Join(notes, "; ")))
	}
	return nil
}

// writeBody answers a body, or to a reader who has it already that it is the same.
func writeBody(w http.ResponseWriter, r *http.Request, contentType string, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", contentType)
	h.Set("Vary", "Accept-Encoding")
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		tag := fmt.Sprintf(`"%016x"`, xxhash.Sum64(body))
		if len(body) >= httpbody.GzipLeast {
			tag = "W/" + tag // of two forms, plain and compressed
		}
		h.Set("ETag", tag)
		if httpbody.Unchanged(r, strings.TrimPrefix(tag, "W/")) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if len(body) >= httpbody.GzipLeast && httpbody.TakesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = httpbody.Gzip(body, gzip.BestSpeed)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the asker went away; nobody is left to tell
}

// read reads the body, a JSON object with known fields only; an empty one is an object without any.
func (c call) read(into any) error {
	if t := c.Header.Get("Content-Type"); c.ContentLength != 0 && t != "" {
		if media, _, err := mime.ParseMediaType(t); err != nil || media != "application/json" {
			return badMedia(t)
		}
	}
	d := json.NewDecoder(c.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	switch {
	case err == nil && d.More():
		return badRequest{"the body has more than one JSON object"}
	case err == nil, errors.As(err, new(*http.MaxBytesError)):
		return err
	case err.Error() == "EOF":
		return nil
	}
	return badRequest{"the body: " + err.Error()}
}

// query reads the parameters of a request.
type query struct {
	values url.Values
	known  map[string]bool
	err    error // the first
}

func (c call) query() *query { return &query{values: c.URL.Query(), known: make(map[string]bool)} }

func (q *query) text(name string) string {
	q.known[name] = true
	return q.values.Get(name)
}

// texts reads a parameter that may be given several times.
func (q *query) texts(name string) []string {
	q.known[name] = true
	return q.values[name]
}

// flag reads true or false; without one it is false.
func (q *query) flag(name string) bool {
	text := q.text(name)
	if text != "" && text != "true" && text != "false" {
		q.bad("%s is %q; it must be true or false", name, text)
	}
	return text == "true"
}

// number reads a whole number within bounds; without one it is otherwise.
func (q *query) number(name string, otherwise, least, most int) int {
	text := q.text(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		q.bad("%s is %q; it must be a number from %d to %d", name, text, least, most)
	}
	return n
}

func (q *query) time(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		q.bad("%s is %q; it must be a time such as 2026-12-01T06:00:00Z", name, text)
	}
	return t
}

// duration reads a duration as settings have it; without one it is 0.
func (q *query) duration(name string) time.Duration {
	text := q.text(name)
	if text == "" {
		return 0
	}
	d, err := spec.ParseDuration(text)
	if err != nil {
		q.bad("%s: %v", name, err)
	}
	return d
}

func (q *query) bad(format string, args ...any) {
	if q.err == nil {
		q.err = badRequest{fmt.Sprintf(format, args...)}
	}
}

// end refuses what was not asked for.
func (q *query) end() error {
	for name := range q.values {
		if plain, cut := strings.CutSuffix(name, "_ms"); cut && q.known[plain] {
			q.bad("there is no parameter %q here; a duration has its unit: write %s=90s", name, plain)
		} else if !q.known[name] {
			q.bad("there is no parameter %q here", name)
		}
	}
	return q.err
}
