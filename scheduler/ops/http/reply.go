package opshttp

import (
	"reflect"

	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/escapement/escapement/scheduler/internal/httpbody"
	"github.com/escapement/escapement/scheduler/ops"
)

// Headers of an answer.
const (
	// NextHeader is after of the next page of a list; it is not there on the last page. Link has
	// the whole address.
	NextHeader = "Escapement-Next"
	// IncompleteHeader names the part that a list lacks, and the cause.
	IncompleteHeader = "Escapement-Incomplete"
	// UnreadableHeader is how many records a list lacks because this version cannot read them;
	// IncompleteHeader names the first.
	UnreadableHeader = "Escapement-Unreadable"
	// WarningHeader is a warning about an act, such as its absence from the audit.
	WarningHeader = "Escapement-Warning"
)

// reply writes the output of an operation, a pointer. Missing parts of a read's output are noted in
// the headers.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, out any, err error) {
	value := reflect.ValueOf(out).Elem()
	there := !value.IsZero()
	if list, is := out.(ops.Listing); is {
		items, next, unknown := list.Part()
		value = reflect.ValueOf(items).Elem()
		there = !value.IsNil() || err == nil
		if *unknown > 0 {
			err = errors.Join(err, fmt.Errorf("%d rows are left out: %w", *unknown, ops.ErrUnknownFormat))
		}
		if *next != "" {
			q := r.URL.Query()
			q.Set("after", *next)
			w.Header().Set(NextHeader, url.QueryEscape(*next))
			w.Header().Set("Link", fmt.Sprintf("<?%s>; rel=\"next\"", q.Encode()))
		}
	}
	if reads := r.Method == http.MethodGet || r.Method == http.MethodHead; reads && there {
		err = noteLacks(w.Header(), err)
	}
	if errors.Is(err, ops.ErrNotAudited) {
		w.Header().Set(WarningHeader, url.QueryEscape(err.Error()))
		err = nil
	}
	if err != nil {
		writeProblem(w, s.problemOf(r, err))
		return
	}
	if _, none := out.(*ops.None); none {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	body, err := ops.Encode(value.Interface())
	if err != nil {
		writeProblem(w, s.problemOf(r, err))
		return
	}
	writeBody(w, r, "application/json", append(body, '\n'))
}

// lacksNamed is how many records that cannot be read are named: proxies bound the size of headers.
const lacksNamed = 5

// noteLacks notes a list's missing parts in the headers, and returns the other errors.
func noteLacks(h http.Header, err error) error {
	parts, unreadable, other := ops.Incomplete(err)
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

// writeBody answers a body, or 304 to a client that has the same body already.
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
	_, _ = w.Write(body) //nolint:gosec // an error: the caller has gone; the type of the content is no HTML, with nosniff
}
