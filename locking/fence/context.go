package fence

import (
	"context"

	"github.com/escapement/escapement/locking"
)

type tokenKey struct{}

// WithToken returns a context that carries a token, for Transport to send and
// for TokenFrom to find.
func WithToken(ctx context.Context, token locking.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// WithLease returns the lease's context with the lease's token in it: it ends
// when the lease does.
func WithLease(lease *locking.Lease) context.Context {
	return WithToken(lease.Context(), lease.Token())
}

// TokenFrom returns the token that ctx carries: what WithToken put there, and in
// a request that a Handler let in the one that came with it.
func TokenFrom(ctx context.Context) (token locking.Token, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(locking.Token)
	return token, ok
}
