package fence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/escapement/escapement/locking"
)

const (
	// TokenHeader carries the token of a request: 1 to 16 digits. HTTP jobs of the scheduler send it.
	TokenHeader = "Fencing-Token"

	// MaxHeader carries, in the answer to a stale request, the largest token that the guard has seen.
	MaxHeader = "Fencing-Token-Max"

	// defaultWait is Handler.Wait when that is 0.
	defaultWait = 5 * time.Second
)

// errWaited is the cause of a request's context after Handler.Wait.
var errWaited = errors.New("waited as long as Handler.Wait allows")

// Handler passes requests with a current token to Next. It answers all other requests itself, in
// JSON, with the next step:
//
//	412  a larger token was seen: MaxHeader and the field max
//	428  the request has no token
//	400  it has several tokens, or an invalid one, or Resource returned an invalid name (see Valid)
//	503  with Retry-After: the store did not answer, older requests did not return within Wait, or
//	     too many requests wait (100 in a Memory)
//	503  without Retry-After: the store has no room for another fence (ErrFull)
//	500  a required field is missing, or the store was set up wrong (an *InputError)
//
// The last three are logged, with the store's error.
//
// When the store is a Gate, as Memory is, all requests of a fence that Next is serving have the same token. A larger
// token is stored at once. It ends the contexts of older requests, with a *StaleError as cause, and its request is
// passed on when they have returned. It waits at most Wait, also after its client has gone, because net/http
// notices that only when the body was read. The token of a request that waited in vain stays stored.
//
// Any other store is called once, before Next. A request that was passed on and then paused may so
// write after a newer one. To prevent that, Next compares the token of TokenFrom once more in the
// transaction that writes, with SQL.Check.
type Handler struct {
	Next     http.Handler                 // serves the accepted requests; required
	Store    Store                        // required
	Resource func(r *http.Request) string // returns the name of a request's fence, 1 to 512 bytes; required
	Wait     time.Duration                // the longest wait for older requests at a Gate; 0 or less: 5 s
	Logger   *slog.Logger                 // gets errors of the store; default none
}

// refusal is the body of an answer that is not Next's.
type refusal struct {
	Error string        `json:"error"`
	Next  string        `json:"next"`
	Fence string        `json:"fence,omitempty"`
	Token locking.Token `json:"token,omitempty"`
	Max   locking.Token `json:"max,omitempty"`
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.check(); err != nil { // before a token is stored
		h.refuse(w, r, "", err)
		return
	}
	values := r.Header.Values(TokenHeader)
	if len(values) == 0 {
		refuse(w, http.StatusPreconditionRequired, refusal{
			Error: "the request has no fencing token", Next: "acquire the lock, and send its token in the header " + TokenHeader})
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
	if err := Valid(fence, token); err != nil {
		refuse(w, http.StatusBadRequest, refusal{Error: err.Error(), Next: "request a resource that has a fence"})
		return
	}
	ctx, leave, err := h.enter(WithToken(r.Context(), token), fence, token)
	if err != nil {
		h.refuse(w, r, fence, err)
		return
	}
	defer leave()
	h.Next.ServeHTTP(w, r.WithContext(ctx))
}

// check returns an *InputError for a required field that is nil.
func (h *Handler) check() error {
	missing := func(field string) error {
		return &InputError{Field: "Handler." + field, Why: "is nil; it is required"}
	}
	switch {
	case h.Next == nil:
		return missing("Next")
	case h.Store == nil:
		return missing("Store")
	case h.Resource == nil:
		return missing("Resource")
	}
	return nil
}

func (h *Handler) enter(ctx context.Context, fence string, token locking.Token) (context.Context, func(), error) {
	g, ok := h.Store.(Gate)
	if !ok {
		return ctx, func() {}, h.Store.Check(ctx, fence, token)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(h.wait(), func() { cancel(errWaited) })
	inside, leave, err := g.Enter(ctx, fence, token)
	if inTime := timer.Stop(); err == nil && !inTime {
		leave() // its context has ended
		err = fmt.Errorf("fence %q: admitted too late: %w", fence, errWaited)
	}
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return inside, func() { leave(); cancel(nil) }, nil
}

func (h *Handler) wait() time.Duration {
	if h.Wait <= 0 {
		return defaultWait
	}
	return h.Wait
}

// refuse answers a request that the store did not accept. The store's own error goes to the log only.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, fence string, err error) {
	if stale := (*StaleError)(nil); errors.As(err, &stale) {
		w.Header().Set(MaxHeader, strconv.FormatInt(stale.Max, 10))
		refuse(w, http.StatusPreconditionFailed, refusal{
			Error: ErrStale.Error(), Fence: stale.Fence, Token: stale.Token, Max: stale.Max,
			Next: "stop: another holder has the lock. If you have acquired it just now, release it and acquire it again, with a token above max"})
		return
	}
	if h.Logger != nil {
		h.Logger.WarnContext(r.Context(), "a request could not be checked", "fence", fence, "error", err)
	}
	status, body := failure(err)
	if body.Next == nextRetry {
		w.Header().Set("Retry-After", "1")
	}
	refuse(w, status, body)
}

// The next step after a failure of the store.
const (
	nextRetry  = "send the same request again, with the same token, while the lock is held"
	nextReport = "tell the operator of this service; its log says what to do. Until then the answer stays the same"
)

// failure returns the answer when the guard has failed.
func failure(err error) (status int, body refusal) {
	var input *InputError // of the Handler or its store: the request is valid
	switch {
	case errors.As(err, &input):
		return http.StatusInternalServerError, refusal{Error: "the guard of fencing tokens is set up wrong", Next: nextReport}
	case errors.Is(err, ErrFull):
		return http.StatusServiceUnavailable, refusal{Error: "the store of fencing tokens has " + ErrFull.Error(), Next: nextReport}
	case errors.Is(err, errWaited):
		return http.StatusServiceUnavailable, refusal{Error: "a request with a smaller token is still being served", Next: nextRetry}
	case errors.Is(err, ErrBusy):
		return http.StatusServiceUnavailable, refusal{Error: ErrBusy.Error() + " until requests with a smaller token are served", Next: nextRetry}
	}
	return http.StatusServiceUnavailable, refusal{Error: "the fencing token could not be checked", Next: nextRetry}
}

func refuse(w http.ResponseWriter, status int, body refusal) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails when the client has gone
}
