package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/escapement/escapement/scheduler"
)

// Headers of an answer.
const (
	// NextHeader is after of the next page of a list; it is not there on the last page. Link has the whole address.
	NextHeader = "Escapement-Next"
	// IncompleteHeader says what a list lacks, and why.
	IncompleteHeader = "Escapement-Incomplete"
	// WarningHeader says what else is to be known of what was done, such as that it is not in the audit.
	WarningHeader = "Escapement-Warning"
)

// page is a list, or a part of one.
type page struct {
	items any    // a slice
	next  string // after of the next page; "" for the last one
}

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
		if partly := new(scheduler.UnreachableError); errors.As(err, &partly) {
			w.Header().Set(IncompleteHeader, url.QueryEscape(err.Error()))
			err = nil
		}
	}
	if errors.Is(err, scheduler.ErrNotAudited) {
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

// writeBody answers a body, or to a reader who has it already that it is the same.
func writeBody(w http.ResponseWriter, r *http.Request, contentType string, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", contentType)
	if r.Method == http.MethodGet {
		tag := fmt.Sprintf(`"%016x"`, xxhash.Sum64(body))
		h.Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the asker went away; nobody is left to tell
}

// read reads the body, a JSON object with known fields only; an empty one is an object without any.
func (c call) read(into any) error {
	if t := c.Header.Get("Content-Type"); c.ContentLength != 0 && t != "" {
		if media, _, err := mime.ParseMediaType(t); err != nil || media != "application/json" {
			return badRequest{"the body must be application/json, and is " + strconv.Quote(t) + "; curl sends JSON with --json"}
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

func (q *query) bad(format string, args ...any) {
	if q.err == nil {
		q.err = badRequest{fmt.Sprintf(format, args...)}
	}
}

// end refuses what was not asked for.
func (q *query) end() error {
	for name := range q.values {
		if !q.known[name] {
			q.bad("there is no parameter %q here", name)
		}
	}
	return q.err
}
