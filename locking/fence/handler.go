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
	// TokenHeader carries the token of a request: 1 to 16 digits. Jobs of kind
	// http send it by themselves.
	TokenHeader = "Fencing-Token"

	// MaxHeader carries, in the answer to a stale request, the largest token
	// that the guard has seen.
	MaxHeader = "Fencing-Token-Max"

	// DefaultWait is how long a request waits for older ones when Handler.Wait is 0.
	DefaultWait = 5 * time.Second
)

// errWaited is why a request waits no longer.
var errWaited = errors.New("waited as long as Handler.Wait allows")

// Handler lets in the requests that carry a current token, and answers the
// others itself, in JSON, with what to do next:
//
//	412  a larger token was seen; MaxHeader and the field max say which
//	428  no token came
//	400  more than one came, or it is no token, or Resource named no fence (see Valid)
//	503  with Retry-After: the store gave no answer, older requests stay inside
//	     longer than Wait, or as many wait as may wait (MaxWaiting in a Memory)
//	503  without: the store has no room for another fence (ErrFull)
//	500  the Handler lacks what is required, or the store says that it was set up wrong, with an *InputError
//
// The last three are in the log, with what the store said.
//
// When the store is a Gate (Memory is), one fence has only requests with equal
// tokens inside: a newer one is noted at once, ends the contexts of the older,
// with a *StaleError as cause, and is let in when they have returned. It waits at
// most Wait, also when its client has gone: net/http learns that only when the
// body has been read. The token of a request that has waited in vain counts.
//
// Any other store is asked before Next is called and not again. A request that
// was let in and then stood still may so write after a newer one. Close that in
// Next: let TokenFrom find the token, and compare it once more in the transaction
// that writes, with SQL.Check.
type Handler struct {
	Next     http.Handler                 // gets what was let in; TokenFrom finds the token; required
	Store    Store                        // required
	Resource func(r *http.Request) string // names the fence of a request, 1 to 512 bytes; required
	Wait     time.Duration                // the longest wait for older requests at a Gate; 0 or less: 5 s
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
	if err := h.check(); err != nil { // before a token is remembered
		h.refuse(w, r, "", err)
		return
	}
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
	if err := Valid(fence, token); err != nil {
		refuse(w, http.StatusBadRequest, refusal{Error: err.Error(), Next: "ask for a resource that has a fence"})
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

// check returns an *InputError for what is required and not there.
func (h *Handler) check() error {
	lacks := func(field string) error {
		return &InputError{Field: "Handler." + field, Why: "is nil; it is required"}
	}
	switch {
	case h.Next == nil:
		return lacks("Next")
	case h.Store == nil:
		return lacks("Store")
	case h.Resource == nil:
		return lacks("Resource")
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
		err = fmt.Errorf("fence %q: let in too late: %w", fence, errWaited)
	}
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return inside, func() { leave(); cancel(nil) }, nil
}

func (h *Handler) wait() time.Duration {
	if h.Wait <= 0 {
		return DefaultWait
	}
	return h.Wait
}

// refuse answers a request that the store did not accept. What the store said
// when it failed is not the client's business.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, fence string, err error) {
	if stale := (*StaleError)(nil); errors.As(err, &stale) {
		w.Header().Set(MaxHeader, strconv.FormatInt(stale.Max, 10))
		refuse(w, http.StatusPreconditionFailed, refusal{
			Error: ErrStale.Error(), Fence: stale.Fence, Token: stale.Token, Max: stale.Max,
			Next: "stop: somebody else has the lock. If you have acquired it just now, release it and acquire it again, with a token above max"})
		return
	}
	if h.Logger != nil {
		h.Logger.WarnContext(r.Context(), "fence did not accept a request", "fence", fence, "error", err)
	}
	status, body := failure(err)
	if body.Next == again {
		w.Header().Set("Retry-After", "1")
	}
	refuse(w, status, body)
}

// What a client can do about a failure of the store.
const (
	again  = "send the same request again, with the same token, while the lock is held"
	report = "tell whoever runs this service; its log says what to do. Until that is done the answer stays the same"
)

// failure returns the answer to a request that is not to blame.
func failure(err error) (status int, body refusal) {
	var input *InputError // Valid has had its say: this one is about the Handler or its store
	switch {
	case errors.As(err, &input):
		return http.StatusInternalServerError, refusal{Error: "the guard of fencing tokens is set up wrong", Next: report}
	case errors.Is(err, ErrFull):
		return http.StatusServiceUnavailable, refusal{Error: "the store of fencing tokens has " + ErrFull.Error(), Next: report}
	case errors.Is(err, errWaited):
		return http.StatusServiceUnavailable, refusal{Error: "a request with a smaller token is still being served", Next: again}
	case errors.Is(err, ErrBusy):
		return http.StatusServiceUnavailable, refusal{Error: ErrBusy.Error() + " until requests with a smaller token are served", Next: again}
	}
	return http.StatusServiceUnavailable, refusal{Error: "the fencing token could not be checked", Next: again}
}

func refuse(w http.ResponseWriter, status int, body refusal) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone; there is nobody to tell
}
