package fence

import (
	"context"

	"github.com/escapement/escapement/locking"
)

type tokenKey struct{}

// WithToken returns a context with a token, for Transport and TokenFrom.
func WithToken(ctx context.Context, token locking.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// WithLease returns the lease's context with the lease's token. It ends when the lease does.
func WithLease(lease *locking.Lease) context.Context {
	return WithToken(lease.Context(), lease.Token())
}

// TokenFrom returns the token of ctx. WithToken sets it; in Handler.Next it is the token of the request.
func TokenFrom(ctx context.Context) (token locking.Token, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(locking.Token)
	return token, ok
}
