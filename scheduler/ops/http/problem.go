package opshttp

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
)

// problem is an error as problem details (RFC 9457) show it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"` // for programs
	// Faults are the faults of single settings, where the error is about settings.
	Faults []ops.FaultView `json:"faults,omitempty"`
}

// retryAfter is after how many seconds it may be worth asking again.
const retryAfter = "5"

// problemType begins the type of each problem; its code follows.
const problemType = "urn:escapement:problem:"

func writeProblem(w http.ResponseWriter, p problem) {
	p.Type, p.Title = problemType+p.Code, http.StatusText(p.Status)
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	text, _ := ops.Encode(p)
	_, _ = w.Write(append(text, '\n')) // the client went away; no reader is left
}

// badRequest is an error of the request.
type badRequest struct{ what string }

func (e badRequest) Error() string { return e.what }

// badMedia is a body of another media type than JSON.
type badMedia string

func (e badMedia) Error() string {
	return "the body must be application/json, and is " + strconv.Quote(string(e)) + "; curl sends JSON with --json"
}

// codes are the errors by their codes in the API, for the server and the client. The first match
// counts.
var codes = []struct {
	code   string
	status int
	err    error
}{
	{"unknown_namespace", http.StatusNotFound, ops.ErrUnknownNamespace},
	{"unknown_job", http.StatusNotFound, ops.ErrUnknownJob},
	{"unknown_run", http.StatusNotFound, ops.ErrUnknownRun},
	{"unknown_node", http.StatusNotFound, ops.ErrUnknownNode},
	{"unknown_lock", http.StatusNotFound, ops.ErrUnknownLock},
	{"closed", http.StatusConflict, ops.ErrClosed},
	{"too_many", http.StatusTooManyRequests, ops.ErrTooMany},
	{"refused", http.StatusConflict, ops.ErrRefused},
	{"held", http.StatusConflict, locking.ErrHeld},
	{"lost", http.StatusConflict, locking.ErrLost},
	{"unknown_format", http.StatusUnprocessableEntity, ops.ErrUnknownFormat},
	{"unreachable", http.StatusServiceUnavailable, locking.ErrUnreachable},
	// of the client alone: the server has these codes for errors of its own
	{"timeout", 0, locking.ErrUnreachable},
	{"unauthorized", 0, ErrAccess},
	{"forbidden", 0, ErrAccess},
	{"cross_origin", 0, ErrAccess},
	{"bad_request", 0, ops.ErrRefused},
	{"too_large", 0, ops.ErrRefused},
	{"unsupported_media_type", 0, ops.ErrRefused},
}

// problemOf is the answer for an error. The text of an unforeseen error goes to the log only.
func (s *Server) problemOf(r *http.Request, err error) problem {
	var bad badRequest
	var input *ops.InputError
	var name *locking.InputError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &bad), errors.As(err, &input), errors.As(err, &name):
		return problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: err.Error()}
	case errors.As(err, new(badMedia)):
		return problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Detail: err.Error()}
	case errors.As(err, &large):
		return problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Detail: large.Error()}
	}
	for _, c := range codes {
		if c.status == 0 || !errors.Is(err, c.err) {
			continue
		}
		p := problem{Status: c.status, Code: c.code, Detail: err.Error(), Faults: ops.FaultsOf(err)}
		if len(p.Faults) > 0 {
			p.Status = http.StatusUnprocessableEntity
		}
		return p
	}
	if r.Context().Err() != nil {
		return problem{Status: http.StatusServiceUnavailable, Code: "timeout", Detail: "it took too long; ask for less, or again"}
	}
	s.cfg.Logger.Error("an HTTP request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	return problem{Status: http.StatusInternalServerError, Code: "internal", Detail: "it failed; the node's log says why"}
}

// withProblems makes problem details of the standard mux' own refusals: an unknown path or method.
func withProblems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(&refusals{ResponseWriter: w, request: r}, r)
	})
}

// refusals replaces the text of answers of 404 and 405 that are not ours.
type refusals struct {
	http.ResponseWriter
	request  *http.Request
	replaced bool
}

// Unwrap is for http.ResponseController.
func (w *refusals) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader writes the status, and problem details in place of the mux's text.
func (w *refusals) WriteHeader(status int) {
	at := w.request.URL.Path
	p := problem{Status: status, Code: "unknown_path", Detail: "nothing is at " + at + "; " + Prefix + "openapi.json describes what is"}
	if !strings.HasPrefix(at, Prefix) {
		p.Detail = "the API's paths begin with " + Prefix + ", and the request's is " + at +
			": mount the handler where these paths reach it, behind http.StripPrefix for a path in front, and without it for " + Prefix
	}
	if status == http.StatusMethodNotAllowed {
		p.Code, p.Detail = "method_not_allowed", w.request.Method+" is not for this path; the header Allow has what is"
	}
	ours := w.Header().Get("Content-Type") == "application/problem+json"
	if ours || status != http.StatusMethodNotAllowed && status != http.StatusNotFound {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.replaced = true
	w.Header().Del("Content-Length")
	writeProblem(w.ResponseWriter, p)
}

// Write writes a part of the body, unless it was replaced.
func (w *refusals) Write(b []byte) (int, error) {
	if w.replaced {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
