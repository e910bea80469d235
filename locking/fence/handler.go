package fence

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/escapement/escapement/locking"
)

const (
	// TokenHeader carries the token of a request: 1 to 16 digits. Jobs of kind
	// http send it by themselves.
	TokenHeader = "Fencing-Token"

	// MaxHeader carries, in the answer to a stale request, the largest token
	// that the guard has seen.
	MaxHeader = "Fencing-Token-Max"
)

// Handler lets in the requests that carry a current token, and answers the
// others itself, in JSON, with what to do next:
//
//	412  a larger token was seen; MaxHeader and the field max say which
//	428  no token came
//	400  more than one came, or it is no token, or Resource named no fence
//	503  the store gave no answer, or the newer request gave up waiting
//
// When the store is a Gate (Memory is), one fence has only requests with equal
// tokens inside: a newer one is noted at once, ends the contexts of the older,
// with a *StaleError as cause, and is let in when they have returned.
//
// Any other store is asked before Next is called and not again. A request that
// was let in and then stood still may so write after a newer one. Close that in
// Next: let TokenFrom find the token, and compare it once more in the transaction
// that writes, with SQL.Check.
type Handler struct {
	Next     http.Handler                 // gets what was let in; TokenFrom finds the token; required
	Store    Store                        // required
	Resource func(r *http.Request) string // names the fence of a request, 1 to 512 bytes; required
	Logger   *slog.Logger                 // hears what the store said when it failed; default none
}

// refusal is the body of an answer that is not Next's.
type refusal struct {
	Error string        `json:"error"`
	Next  string        `json:"next"`
	Fence string        `json:"fence,omitempty"`
	Token locking.Token `json:"token,omitempty"`
	Max   locking.Token `json:"max,omitempty"`
}

// ServeHTTP is described at Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	values := r.Header.Values(TokenHeader)
	if len(values) == 0 {
		refuse(w, http.StatusPreconditionRequired, refusal{
			Error: "the request has no fencing token", Next: "acquire the lock and send its token in the header " + TokenHeader})
		return
	}
	if len(values) > 1 {
		refuse(w, http.StatusBadRequest, refusal{
			Error: "the request has " + strconv.Itoa(len(values)) + " fencing tokens", Next: "send the header " + TokenHeader + " once"})
		return
	}
	token, err := ParseToken(values[0])
	if err != nil {
		refuse(w, http.StatusBadRequest, refusal{Error: err.Error(), Next: "send the lease's token in the header " + TokenHeader + ", as digits"})
		return
	}
	fence := h.Resource(r)
	ctx, leave, err := h.enter(WithToken(r.Context(), token), fence, token)
	if err != nil {
		h.refuse(w, r, fence, err)
		return
	}
	defer leave()
	h.Next.ServeHTTP(w, r.WithContext(ctx))
}

func (h *Handler) enter(ctx context.Context, fence string, token locking.Token) (context.Context, func(), error) {
	if err := Valid(fence, token); err != nil {
		return nil, nil, err
	}
	if g, ok := h.Store.(Gate); ok {
		return g.Enter(ctx, fence, token)
	}
	return ctx, func() {}, h.Store.Check(ctx, fence, token)
}

// refuse answers a request that the store did not accept. What the store said
// when it failed is not the client's business.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, fence string, err error) {
	var stale *StaleError
	var input *InputError
	switch {
	case errors.As(err, &stale):
		w.Header().Set(MaxHeader, strconv.FormatInt(stale.Max, 10))
		refuse(w, http.StatusPreconditionFailed, refusal{
			Error: ErrStale.Error(), Fence: stale.Fence, Token: stale.Token, Max: stale.Max,
			Next: "stop: somebody else has the lock. If you have acquired it just now, acquire it again, with a token above max"})
	case errors.As(err, &input):
		refuse(w, http.StatusBadRequest, refusal{Error: input.Error(), Next: "ask for a resource that has a fence"})
	default:
		if h.Logger != nil {
			h.Logger.WarnContext(r.Context(), "fence gave no answer", "fence", fence, "error", err)
		}
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, refusal{
			Error: "the fencing token could not be checked", Next: "send the same request again, with the same token, while the lock is held"})
	}
}

func refuse(w http.ResponseWriter, status int, body refusal) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone; there is nobody to tell
}
