package opshttp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/ops"
)

// Identity is the user who makes a request.
type Identity struct {
	Name string   `json:"name"`
	Role ops.Role `json:"-"`
}

// Access decides which users have which role. The zero value makes the server open: every client is
// an operator.
type Access struct {
	// Tokens are bearer tokens (RFC 6750), each with its user.
	Tokens map[string]Identity
	// Users are the users of basic authentication (RFC 7617), by name.
	Users map[string]User
	// Header names the header in which a trusted proxy names the user. The proxy must remove the
	// header from clients' requests. "" for none.
	Header string
	// HeaderRole is the role of users whom the proxy names. Default ops.Viewer. RoleHeader names a
	// header with the role instead, viewer or operator; any other value has no role.
	HeaderRole ops.Role
	RoleHeader string
	// Hosts are the names by which an open server may be called, beside localhost and addresses.
	// Otherwise a page of another site, whose name was made to lead here, could operate the server
	// from the browser of a user with access (DNS rebinding).
	Hosts []string
}

// User is a user of basic authentication.
type User struct {
	Password string
	Role     ops.Role
}

// Open reports whether every client is an operator.
func (a *Access) Open() bool { return len(a.Tokens) == 0 && len(a.Users) == 0 && a.Header == "" }

// identify returns the user who makes a request, without a role when the user is not known.
func (a *Access) identify(r *http.Request) Identity {
	if a.Open() {
		return Identity{Name: r.Header.Get(AuthorHeader), Role: ops.Operator}
	}
	if name := only(r, a.Header); name != "" {
		role := cmp.Or(a.HeaderRole, ops.Viewer)
		if a.RoleHeader != "" {
			role, _ = ops.ParseRole(only(r, a.RoleHeader))
		}
		return Identity{name, role}
	}
	if token, bearer := bearerOf(r); bearer {
		found := Identity{}
		for secret, who := range a.Tokens {
			if same(secret, token) {
				found = who
			}
		}
		return found
	}
	if name, password, basic := r.BasicAuth(); basic {
		if u, known := a.Users[name]; same(u.Password, password) && known && u.Password != "" {
			return Identity{name, u.Role}
		}
	}
	return Identity{}
}

// bearerOf is the token of a request, which may be empty; false for none. The name of the scheme
// has no case (RFC 9110, 11.1).
func bearerOf(r *http.Request) (token string, bearer bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimLeft(token, " "), strings.EqualFold(scheme, "Bearer")
}

// only is the value of a header that a request has once; "" else. A second value is not the
// proxy's.
func only(r *http.Request, header string) string {
	if values := r.Header.Values(header); header != "" && len(values) == 1 {
		return values[0]
	}
	return ""
}

// called reports whether a request uses a name that an open server may have.
func (a *Access) called(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(strings.TrimSuffix(host, "."), "[]")
	is := func(name string) bool { return strings.EqualFold(name, host) } // names have no case (RFC 9110, 4.2.3)
	return !a.Open() || is("localhost") || net.ParseIP(host) != nil || slices.ContainsFunc(a.Hosts, is)
}

// same compares secrets in a time that is independent of them.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// Headers of a request.
const (
	// AuthorHeader names the author on an open server.
	AuthorHeader = "Escapement-Author"
	// ReasonHeader is the reason for the audit, where the body has no reason.
	ReasonHeader = "Escapement-Reason"
	// ViaHeader is the means: cli or console. Default api.
	ViaHeader = "Escapement-Via"
)

func viaOf(r *http.Request) string {
	switch via := r.Header.Get(ViaHeader); via {
	case "cli", "console":
		return via
	}
	return "api"
}

type identityKey struct{}

// identityOf is the user of a request that was let in.
func identityOf(r *http.Request) Identity {
	who, _ := r.Context().Value(identityKey{}).(Identity)
	return who
}

// Guard lets users with a role through, with the API's identity of them, and refuses the rest: for
// handlers beside the API, such as metrics and the console. On an open server, Guard refuses
// unknown host names, as Access.Named does.
func (s *Server) Guard(role ops.Role, next http.Handler) http.Handler {
	return s.cfg.Access.Named(s.guarded(role, next))
}

// Named refuses requests to an open server by a name that is not one of Hosts. Every handler that
// reveals anything belongs behind Named: a page whose site's name was made to lead here may read
// the answers.
func (a *Access) Named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		//guard:host-named P8 a page of another site does not read from an open server (DNS rebinding)
		if !a.called(r) {
			writeProblem(w, problem{Status: http.StatusForbidden, Code: "unknown_host", Detail: "everybody is let in here, so only localhost, addresses and http.hosts may be in the URL; add the name there, or set http.operator_token"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) guarded(role ops.Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := s.cfg.Access.identify(r)
		switch {
		case who.Role == ops.Nobody:
			for _, scheme := range s.cfg.Access.schemes() {
				w.Header().Add("WWW-Authenticate", scheme)
			}
			detail := unknownCredentials(r)
			if detail != "" {
				s.refused.log(s.cfg.Logger, r, detail)
			}
			writeProblem(w, problem{Status: http.StatusUnauthorized, Code: "unauthorized", Detail: cmp.Or(detail, "send a bearer token, or the name and password of a user")})
		case who.Role < role:
			writeProblem(w, problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "this takes the role " + role.String() + "; " + cmp.Or(who.Name, "nobody") + " has " + who.Role.String()})
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, who)))
		}
	})
}

// unknownCredentials names the kind of credentials of a refused request; "" for none.
func unknownCredentials(r *http.Request) string {
	if _, bearer := bearerOf(r); bearer {
		return "the token is not known here"
	}
	if _, _, basic := r.BasicAuth(); basic {
		return "the name and password are not known here"
	}
	return ""
}

// refusedLog writes at most one line a second about refused credentials.
type refusedLog struct {
	mu   sync.Mutex
	last time.Time
	left int // refused requests without a line since last
}

// log logs a refused request: its origin and its path, never the credentials, nor a name, which may
// be a password in the wrong field.
func (l *refusedLog) log(to *slog.Logger, r *http.Request, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last) < time.Second {
		l.left++
		return
	}
	to.Info("a sign-in was refused", "why", why, "from", r.RemoteAddr, "method", r.Method, "path", r.URL.Path, "not_logged", l.left)
	l.last, l.left = time.Now(), 0
}

// schemes are the schemes of WWW-Authenticate. A browser opens a form for name and password where
// these suffice.
func (a *Access) schemes() []string {
	if len(a.Users) > 0 {
		return []string{`Basic realm="escapement", charset="UTF-8"`}
	}
	return []string{`Bearer realm="escapement"`}
}
