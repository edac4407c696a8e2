// Package httpguard carries fencing tokens over HTTP: a client sends the token of
// its lease with every request, and a server refuses requests of holders whose
// lease is over. It knows nothing of locks, only fencing tokens.
//
// # On the wire
//
//   - The client sends the token, in decimal, in the header Fencing-Token.
//   - If the resource has seen a larger token, the server answers 409 Conflict,
//     with that token in the header Fencing-Token-Highest.
//   - If the header is missing, the server answers 428 Precondition Required.
//     Requests with GET, HEAD and OPTIONS need no token, but if they have one it
//     is checked.
//   - If the header is not a token, the server answers 400 Bad Request.
//   - If the token could not be checked, it answers 503 Service Unavailable.
//
// The handler runs in none of these error cases.
//
// # What it protects
//
// Checking the token of a request does not by itself protect what its handler
// does: a request with a larger token may arrive while a slow handler runs.
// Within one server process, requests for one resource with different tokens
// therefore run one after the other. A larger token waits for the handlers of
// smaller ones to return, and while it waits, smaller ones are refused. This
// protects everything that a handler has done when it returns.
//
// If several processes serve a resource, they need a shared Memory. It remembers
// tokens for all of them, also across restarts, but one process does not wait for
// the handlers of another. The handler must then pass the token on to the store
// that keeps the data: TokenFrom returns the token, guard/sqlguard and
// guard/redisguard check it, and Refuse turns their error into an answer.
package httpguard
