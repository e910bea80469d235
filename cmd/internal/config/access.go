package config

import (
	"cmp"
	"net"
	"slices"
	"strings"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
)

// Access returns the access rules over HTTP, by the checked configuration.
func (h HTTP) Access() opshttp.Access {
	a := opshttp.Access{Tokens: map[string]opshttp.Identity{}, Users: map[string]opshttp.User{}, Header: h.ProxyHeader, RoleHeader: h.ProxyRoleHeader, Hosts: slices.Clone(h.Hosts)}
	if host, _, err := net.SplitHostPort(h.Listen); err == nil && host != "" {
		a.Hosts = append(a.Hosts, host) // the name in the requests of `escapement health`
	}
	if h.OperatorToken != "" {
		a.Tokens[h.OperatorToken] = opshttp.Identity{Name: "operator", Role: ops.Operator}
	}
	if h.ViewerToken != "" {
		a.Tokens[h.ViewerToken] = opshttp.Identity{Name: "viewer", Role: ops.Viewer}
	}
	for name, text := range h.Users {
		role, password, _ := strings.Cut(text, ":")
		of, _ := ops.ParseRole(role)
		a.Users[name] = opshttp.User{Password: password, Role: of}
	}
	a.HeaderRole, _ = ops.ParseRole(cmp.Or(h.ProxyRole, ops.Viewer.String()))
	return a
}

// secretLeast is how long a token or a password is at least: a shorter one can be guessed.
const secretLeast = 8

// access checks the access rules over HTTP.
func (c *checker) access() {
	h := c.HTTP
	for path, token := range map[string]string{"http.operator_token": h.OperatorToken, "http.viewer_token": h.ViewerToken} {
		if strings.Contains(token, masked) {
			c.fault(path, "it is what config print shows in its place; write the token itself")
		} else if token != "" && len(token) < secretLeast {
			c.fault(path, "it is shorter than %d characters; take a random one: openssl rand -hex 16", secretLeast)
		}
	}
	if h.OperatorToken != "" && h.OperatorToken == h.ViewerToken {
		c.fault("http.viewer_token", "it is http.operator_token too; each role takes a token of its own")
	}
	for name, text := range h.Users {
		role, password, split := strings.Cut(text, ":")
		_, known := ops.ParseRole(role)
		switch path := "http.users." + name; {
		case name == "" || strings.Contains(name, ":"):
			c.fault("http.users", "%s is no name for basic authentication: it is empty or has a colon", print.Quote(name))
		case !split || !known:
			c.fault(path, "write ROLE:PASSWORD, with viewer or operator for ROLE")
		case strings.Contains(password, masked):
			c.fault(path, "the password is what config print shows in its place; write the password itself")
		case len(password) < secretLeast:
			c.fault(path, "the password is shorter than %d characters", secretLeast)
		}
	}
	if h.ProxyHeader == "" && h.ProxyRoleHeader != "" {
		c.fault("http.proxy_role_header", "http.proxy_header is missing: the header in which the proxy says who it is")
	}
}

// Exposed returns a warning when every client that reaches the address may operate; "" when access
// is limited, or only this machine reaches the address.
func (h HTTP) Exposed() string {
	a := h.Access()
	host, _, err := net.SplitHostPort(h.Listen)
	if ip := net.ParseIP(host); err != nil || !a.Open() || host == "localhost" || ip != nil && ip.IsLoopback() {
		return ""
	}
	return "everybody who reaches this address may operate the namespace: set http.operator_token (" + EnvPrefix + "HTTP_OPERATOR_TOKEN_FILE), http.users or http.proxy_header, or listen on 127.0.0.1"
}
