package opshttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/ops"
)

// Prefix is what the paths of the API begin with.
const Prefix = "/api/v1/"

const (
	// bodyMax bounds the body of a request, bytes: a payload of 64 KiB, spelt in JSON.
	bodyMax = 256 << 10
	// callTimeout bounds how long a request may take, but for verify, problems, promote and graph.
	callTimeout = 9 * time.Second
	// longTimeout bounds those, slowMost how many are answered at once, and slowEach how many of one caller, see callers: they read much of Redis.
	longTimeout        = 2 * time.Minute
	slowMost, slowEach = 4, 2
)

// Config configures a Server. The zero value serves everybody as an operator: for a loopback address, or below a handler that
// decides who may.
type Config struct {
	// Access says who may do what. Default: everybody is an operator.
	Access Access
	// Version is the version of the program that serves, for openapi.json and the console. Default "".
	Version string
	// Node is the name of the node that serves. Default "".
	Node string
	// Logger gets a line for each answer of 500, and at level info at most one a second about refused credentials, without them.
	// Default: none.
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

// New makes a server of a client's namespace. Run must be called for events, and so that who waits for a run hears of its end at once;
// nothing else begins before a request.
func New(client *ops.Client, cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{client: client, cfg: cfg, feed: newFeed(client), slow: callers{each: slowEach, most: slowMost}, waits: callers{each: waitsEach, most: waitsMost}}
	s.routes = s.mux()
	return s
}

// Run looks for what changes while somebody listens to events or waits for a run, until ctx ends, and returns nil then. It may be called
// once.
func (s *Server) Run(ctx context.Context) error {
	if s.began.Swap(true) {
		return errors.New("api: Server.Run was called before; make another server with New")
	}
	return s.feed.run(ctx)
}

// ServeHTTP answers a request below Prefix. Requests from pages of other origins that would change something are refused.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header() // what a job has written is text, whatever it looks like
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	s.routes.ServeHTTP(w, r)
}

// call is one request by somebody who may make it.
type call struct {
	*http.Request
	who    Identity
	client *ops.Client // which notes in the audit who it is
}

// answer is what a call answers: a value that is shown as JSON, or an error.
type answer func(s *Server, c call) (any, error)

// route is a method and a path of the API.
type route struct {
	method, path string
	role         Role // who may
	long         bool // it may take longer than callTimeout
	answer       answer
}

// routes are all but openapi.json and events.
var routes = []route{
	{"GET", "me", Viewer, false, (*Server).me},
	{"GET", "namespace", Viewer, false, (*Server).namespace},
	{"GET", "overview", Viewer, false, (*Server).overview},
	{"GET", "ends", Viewer, false, (*Server).ends},
	{"GET", "jobs", Viewer, false, (*Server).jobs},
	{"GET", "job-names", Viewer, false, (*Server).jobNames},
	{"GET", "graph", Viewer, true, (*Server).graph},
	{"GET", "stored-jobs", Viewer, false, (*Server).storedJobs},
	{"GET", "handlers", Viewer, false, (*Server).handlers},
	{"GET", "preview", Viewer, false, (*Server).preview},
	{"GET", "jobs/{name}", Viewer, false, (*Server).job},
	{"PUT", "jobs/{name}", Operator, false, (*Server).putJob},
	{"DELETE", "jobs/{name}", Operator, false, (*Server).removeJob},
	{"GET", "jobs/{name}/ticks", Viewer, false, (*Server).ticks},
	{"POST", "jobs/{name}/runs", Operator, false, (*Server).trigger},
	{"POST", "jobs/{name}/pause", Operator, false, (*Server).pause},
	{"POST", "jobs/{name}/resume", Operator, false, (*Server).resume},
	{"POST", "jobs/{name}/rewind", Operator, false, (*Server).rewind},
	{"POST", "jobs/{name}/backfill", Operator, false, (*Server).backfill},
	{"DELETE", "jobs/{name}/backfill", Operator, false, (*Server).cancelBackfill},
	{"GET", "backfills", Viewer, false, (*Server).backfills},
	{"GET", "runs", Viewer, false, (*Server).runs},
	{"GET", "runs/{run}", Viewer, false, (*Server).run},
	{"GET", "runs/{run}/output", Viewer, false, (*Server).output},
	{"POST", "runs/{run}/cancel", Operator, false, (*Server).cancel},
	{"POST", "runs/{run}/rerun", Operator, false, (*Server).rerun},
	{"GET", "nodes", Viewer, false, (*Server).nodes},
	{"GET", "drains", Viewer, false, (*Server).drains},
	{"POST", "nodes/{name}/drain", Operator, false, (*Server).drain},
	{"POST", "nodes/{name}/resume", Operator, false, (*Server).undrain},
	{"GET", "nodes/{name}/rests", Viewer, false, (*Server).rests},
	{"GET", "locks", Viewer, false, (*Server).locks},
	{"GET", "locks/{name}", Viewer, false, (*Server).lock},
	{"POST", "locks/{name}/release", Operator, false, (*Server).release},
	{"GET", "generations", Viewer, false, (*Server).generations},
	{"POST", "generations/{name}/promote", Operator, true, (*Server).promote},
	{"GET", "verify", Viewer, true, (*Server).verify},
	{"GET", "problems", Viewer, true, (*Server).problems},
	{"GET", "audit", Viewer, false, (*Server).audit},
}

// mux is the tree of all routes.
func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.method+" "+Prefix+r.path, s.guarded(r.role, s.answering(r)))
	}
	mux.Handle("GET "+Prefix+"openapi.json", s.guarded(Viewer, http.HandlerFunc(s.openapi)))
	mux.Handle("GET "+Prefix+"events", s.guarded(Viewer, http.HandlerFunc(s.events)))
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problem{Status: http.StatusForbidden, Code: "cross_origin", Detail: "the request comes from a page of another origin"})
	}))
	return s.cfg.Access.Named(protection.Handler(withProblems(mux)))
}

// answering is a route as a handler.
func (s *Server) answering(r route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		limit := callTimeout
		if r.long {
			end, err := s.slow.begin(s.callerOf(req))
			if err != nil {
				s.reply(w, req, nil, err)
				return
			}
			defer end()
			limit = longTimeout
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + time.Second))
		}
		ctx, cancel := context.WithTimeout(req.Context(), limit)
		defer cancel()
		req = req.WithContext(ctx)
		req.Body = http.MaxBytesReader(w, req.Body, bodyMax)
		who := identityOf(req)
		c := call{Request: req, who: who, client: s.client.As(ops.Actor{Name: who.Name, Via: viaOf(req), Reason: req.Header.Get(ReasonHeader)})}
		value, err := r.answer(s, c)
		s.reply(w, req, value, err)
	})
}
