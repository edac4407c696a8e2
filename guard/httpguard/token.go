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

// WithToken returns a context whose requests Transport sends with that token.
func WithToken(ctx context.Context, token fence.Token) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// TokenFrom is the token in a context: of WithToken, or of the request that a
// handler behind the guard is serving. A handler that makes requests with its
// own request's context, through a Transport, hands the token on by itself.
func TokenFrom(ctx context.Context) (fence.Token, bool) {
	token, ok := ctx.Value(tokenKey{}).(fence.Token)
	return token, ok
}
