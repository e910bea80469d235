package fence

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// maxRefusal is how much of a refusal's body is read.
const maxRefusal = 8 << 10

// Transport sends the token that a request's context carries (see WithToken and
// WithLease) in TokenHeader. A request without one goes out as it is, and a
// Handler answers it 428. It sends the token to every host that the client
// talks to; it is no secret.
type Transport struct {
	Base http.RoundTripper // default http.DefaultTransport
}

// RoundTrip is described at http.RoundTripper. Its error is an *InputError when
// the context's token is none, and nothing was sent.
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
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	out := r.Clone(r.Context()) // the request is the caller's
	out.Header.Set(TokenHeader, strconv.FormatInt(token, 10))
	return base.RoundTrip(out)
}

// CloseIdleConnections closes those of the Base, for http.Client.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Refusal returns a *StaleError when resp is a Handler's answer to a stale
// token, and nil when it is any other answer, a 412 of somebody else's
// included. It reads the body of a refusal, and leaves it to the caller to
// close.
//
// It is not the Transport that does this, because an http.RoundTripper must not
// make errors of answers.
func Refusal(resp *http.Response) error {
	if resp.StatusCode != http.StatusPreconditionFailed || resp.Header.Get(MaxHeader) == "" {
		return nil
	}
	highest, err := ParseToken(resp.Header.Get(MaxHeader))
	if err != nil {
		return fmt.Errorf("refused with a header %s that cannot be read: %w", MaxHeader, err)
	}
	var body refusal
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxRefusal)).Decode(&body) // the header says all that matters
	stale := &StaleError{Fence: body.Fence, Token: body.Token, Max: highest}
	if resp.Request != nil && (stale.Fence == "" || stale.Token == 0) {
		stale.Fence = resp.Request.URL.Path
		stale.Token, _ = ParseToken(resp.Request.Header.Get(TokenHeader)) // 0: sent by other means
	}
	return stale
}
