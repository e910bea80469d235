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

// Identity is who makes a request.
type Identity struct {
	Name string   `json:"name"`
	Role ops.Role `json:"-"`
}

// Access says who may do what. The zero value takes everybody for an operator.
type Access struct {
	// Tokens are bearer tokens (RFC 6750), each with who it stands for.
	Tokens map[string]Identity
	// Users are those of basic authentication (RFC 7617), by name.
	Users map[string]User
	// Header names the header in which a trusted proxy says who it is. The proxy must remove it from what it passes on. "" for none.
	Header string
	// HeaderRole is the role of those whom the proxy names. Default ops.Viewer. RoleHeader names a header with the role instead,
	// viewer or operator; any other value is nobody's.
	HeaderRole ops.Role
	RoleHeader string
	// Hosts are names by which a server may be called that lets everybody in, beside localhost and addresses. A page of a site whose
	// name was made to lead here would else operate it from the browser of somebody who may reach it (DNS rebinding).
	Hosts []string
}

// User is a user of basic authentication.
type User struct {
	Password string
	Role     ops.Role
}

// Open reports whether everybody is an operator.
func (a *Access) Open() bool { return len(a.Tokens) == 0 && len(a.Users) == 0 && a.Header == "" }

// identify says who makes a request; a role of ops.Nobody when that is not known.
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

// bearerOf is the token of a request, which may be empty; false for none. The name of the scheme has no case (RFC 9110, 11.1).
func bearerOf(r *http.Request) (token string, bearer bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimLeft(token, " "), strings.EqualFold(scheme, "Bearer")
}

// only is the value of a header that a request has once; "" else. A second one was put in by somebody else than the proxy.
func only(r *http.Request, header string) string {
	if values := r.Header.Values(header); header != "" && len(values) == 1 {
		return values[0]
	}
	return ""
}

// called reports whether a request comes by a name that may be used where everybody is let in.
func (a *Access) called(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(strings.TrimSuffix(host, "."), "[]")
	is := func(name string) bool { return strings.EqualFold(name, host) } // names have no case (RFC 9110, 4.2.3)
	return !a.Open() || is("localhost") || net.ParseIP(host) != nil || slices.ContainsFunc(a.Hosts, is)
}

// same compares secrets in a time that says nothing about them.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// Headers of a request.
const (
	// AuthorHeader says who it is where nobody needs to prove it.
	AuthorHeader = "Escapement-Author"
	// ReasonHeader says why, for the audit, where the body has no reason.
	ReasonHeader = "Escapement-Reason"
	// ViaHeader says by what means: cli or console. Default api.
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

// identityOf is who makes a request that was let in.
func identityOf(r *http.Request) Identity {
	who, _ := r.Context().Value(identityKey{}).(Identity)
	return who
}

// Guard lets through those who have a role, with what the API knows of them, and refuses all others: for handlers beside the API, such
// as metrics and the console. Where everybody is let in, Guard refuses the names of others, as Access.Named does.
func (s *Server) Guard(role ops.Role, next http.Handler) http.Handler {
	return s.cfg.Access.Named(s.guarded(role, next))
}

// Named refuses requests that call the server by a name that is not one of Hosts, where everybody is let in. Everything that tells
// something belongs behind Named: a page whose site's name was made to lead here may read the answers.
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

// unknownCredentials says which credentials a refused request had; "" for none.
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

// log notes a refused request: where it came from and what it asked for, never the credentials, nor a name, which may be a
// password in the wrong field.
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

// schemes are the ways to say who one is. A browser asks for a name and a password where that would do.
func (a *Access) schemes() []string {
	if len(a.Users) > 0 {
		return []string{`Basic realm="escapement", charset="UTF-8"`}
	}
	return []string{`Bearer realm="escapement"`}
}
