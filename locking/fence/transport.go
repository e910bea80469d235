package fence

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// maxRefusal bounds the part of a refusal's body that is read, in bytes.
const maxRefusal = 8 << 10

// Transport is an http.RoundTripper that sends the token of a request's context (see WithToken and WithLease) in
// TokenHeader. A request without a token is sent unchanged, and a Handler answers it 428. The token goes to each host
// that the client calls; it is no secret.
type Transport struct {
	Base http.RoundTripper // default http.DefaultTransport
}

// RoundTrip implements http.RoundTripper. The error is an *InputError for an invalid token; nothing was sent then.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	token, ok := TokenFrom(r.Context())
	if !ok {
		return base.RoundTrip(r)
	}
	if err := checkToken(token); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as http.RoundTripper demands
		}
		return nil, err
	}
	out := r.Clone(r.Context()) // a RoundTripper must not change r
	out.Header.Set(TokenHeader, strconv.FormatInt(token, 10))
	return base.RoundTrip(out)
}

// CloseIdleConnections closes the idle connections of Base, for http.Client.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Refusal returns a *StaleError when resp is a Handler's answer to a stale token, and nil for each other answer, also
// for another 412. It reads the body of a refusal; the caller closes it.
//
// Transport does not do this itself, because an http.RoundTripper must not turn answers into errors.
func Refusal(resp *http.Response) error {
	if resp.StatusCode != http.StatusPreconditionFailed || resp.Header.Get(MaxHeader) == "" {
		return nil
	}
	highest, err := ParseToken(resp.Header.Get(MaxHeader))
	if err != nil {
		return fmt.Errorf("refused as stale, with a wrong header %s: %w", MaxHeader, err)
	}
	var body refusal
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxRefusal)).Decode(&body) // the header suffices
	stale := &StaleError{Fence: body.Fence, Token: body.Token, Max: highest}
	if resp.Request != nil && (stale.Fence == "" || stale.Token == 0) {
		stale.Fence = resp.Request.URL.Path
		stale.Token, _ = ParseToken(resp.Request.Header.Get(TokenHeader)) // 0: sent by other means
	}
	return stale
}
