package httpguard

import (
	"context"

	"github.com/leasehold-dev/leasehold/fence"
)

// The headers.
const (
	// Header has the token of a request.
	Header = "Fencing-Token"
	// HighestHeader has, in a refusal, the largest token that was seen.
	HighestHeader = "Fencing-Token-Highest"
)

type tokenKey struct{}

// WithToken returns a context with the token. Transport sends it with every
// request that has this context.
func WithToken(ctx context.Context, token fence.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// TokenFrom returns the token of a context: that of WithToken, or that of the
// request which a handler behind the guard serves. A handler that makes requests
// with its own request's context, through a Transport, passes the token on
// automatically.
func TokenFrom(ctx context.Context) (fence.Token, bool) {
	token, ok := ctx.Value(tokenKey{}).(fence.Token)
	return token, ok
}
