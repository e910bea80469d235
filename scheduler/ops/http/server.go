package opshttp

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/ops"
)

// Prefix begins the paths of the API.
const Prefix = "/api/v1/"

const (
	// bodyMax bounds the body of a request, bytes: a payload of 64 KiB, spelt in JSON.
	bodyMax = 256 << 10
	// callTimeout bounds how long a request may take, but for verify, problems, promote and graph.
	callTimeout = 9 * time.Second
	// longTimeout bounds those, slowMost how many are answered at once, and slowEach how many of
	// one caller, see callers: they read much of Redis.
	longTimeout        = 2 * time.Minute
	slowMost, slowEach = 4, 2
)

// Config configures a Server. The zero value serves every client as an operator: for a loopback
// address, or below a handler that checks access.
type Config struct {
	// Access decides which users have which role. Default: every client is an operator.
	Access Access
	// Version is the version of the program that serves, for openapi.json and the console. Default "".
	Version string
	// Node is the name of the node that serves. Default "".
	Node string
	// Logger gets a line for each answer of 500, and at level info at most one a second about
	// refused credentials, without them. Default: none.
	Logger *slog.Logger
}

// Server serves a namespace below Prefix. It is safe for concurrent use.
type Server struct {
	client  *ops.Client
	cfg     Config
	feed    *feed
	slow    callers // long requests that are being answered
	waits   callers // requests that wait for the end of a run
	refused refusedLog
	began   atomic.Bool // Run was called
	routes  http.Handler
}

// New makes a server of a client's namespace. Run must be called for events, and so that a wait for
// a run ends with the run; nothing else begins before a request.
func New(client *ops.Client, cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{client: client, cfg: cfg, feed: newFeed(client), slow: callers{each: slowEach, most: slowMost}, waits: callers{each: waitsEach, most: waitsMost}}
	s.routes = s.mux()
	return s
}

// Run polls for changes while a client listens to events or waits for a run, until ctx ends, and
// returns nil then. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	if s.began.Swap(true) {
		return errors.New("api: Server.Run was called before; make another server with New")
	}
	return s.feed.run(ctx)
}

// ServeHTTP answers a request below Prefix. Requests from pages of other origins that would change
// something are refused.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header() // a job's output is text, whatever it looks like
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	s.routes.ServeHTTP(w, r)
}

// Me is the user of a request.
type Me struct {
	Name string `json:"name"`
	Role string `json:"role"`
	// Open reports that no credentials are needed: every client is an operator.
	Open    bool   `json:"open"`
	Node    string `json:"node"`    // which node answers
	Version string `json:"version"` // of its program
}

// route is the handler of a method and a path of the API.
type route struct {
	ops.Info
	answer func(s *Server, w http.ResponseWriter, r *http.Request)
}

// routes are the operations, and the other paths.
func routes() []route {
	all := []route{
		{ops.Info{Method: "GET", Path: "me", Role: ops.Viewer, Summary: "who the request comes from, and which node answers"}, (*Server).me},
		{ops.Info{Method: "GET", Path: "runs/{run}/output", Role: ops.Viewer, Summary: "the last 64 KiB that a run wrote, as text"}, (*Server).output},
	}
	for _, o := range ops.Operations() {
		all = append(all, route{o.About(), func(s *Server, w http.ResponseWriter, r *http.Request) { s.operate(o, w, r) }})
	}
	return all
}

// mux is the tree of all routes.
func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.Handle(r.Method+" "+Prefix+r.Path, s.guarded(r.Role, s.answering(r)))
	}
	mux.Handle("GET "+Prefix+"openapi.json", s.guarded(ops.Viewer, http.HandlerFunc(s.openapi)))
	mux.Handle("GET "+Prefix+"events", s.guarded(ops.Viewer, http.HandlerFunc(s.events)))
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problem{Status: http.StatusForbidden, Code: "cross_origin", Detail: "the request comes from a page of another origin"})
	}))
	return s.cfg.Access.Named(protection.Handler(withProblems(mux)))
}

// answering is a route as a handler, within its time.
func (s *Server) answering(r route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		limit := callTimeout
		if r.Long {
			limit = longTimeout
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + time.Second))
		}
		ctx, cancel := context.WithTimeout(req.Context(), limit)
		defer cancel()
		req = req.WithContext(ctx)
		req.Body = http.MaxBytesReader(w, req.Body, bodyMax)
		r.answer(s, w, req)
	})
}

// operate carries an operation out, and answers its output.
func (s *Server) operate(o ops.Row, w http.ResponseWriter, r *http.Request) {
	in, out := o.New()
	client, err := s.clientOf(r), bind(r, in)
	if err == nil && o.About().Long {
		var end func()
		if end, err = s.slow.begin(s.callerOf(r)); err == nil {
			defer end()
		}
	}
	q, waits := in.(*ops.RunQuery)
	switch {
	case err != nil:
		err = o.Refuse(r.Context(), client, in, err)
	case waits:
		var v ops.RunView
		v, err = s.run(r, client, q)
		out = &v
	default:
		out, err = o.Call(r.Context(), client, in)
	}
	s.reply(w, r, out, err)
}

// clientOf is a client with the request's user as its actor, for the audit.
func (s *Server) clientOf(r *http.Request) *ops.Client {
	return s.client.As(ops.Actor{Name: identityOf(r).Name, Via: viaOf(r), Reason: r.Header.Get(ReasonHeader)})
}

func (s *Server) me(w http.ResponseWriter, r *http.Request) {
	who := identityOf(r)
	err := bind(r, &ops.None{})
	s.reply(w, r, &Me{who.Name, who.Role.String(), s.cfg.Access.Open(), s.cfg.Node, s.cfg.Version}, err)
}

//go:embed openapi.json
var description []byte

func (s *Server) openapi(w http.ResponseWriter, r *http.Request) {
	writeBody(w, r, "application/json", description)
}
