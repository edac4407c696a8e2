// Package httpguard carries fencing tokens over HTTP: a client sends the token of
// its lease with every request, and a server refuses requests of holders whose
// lease is over. It knows nothing of locks: a token is all it needs.
//
// # On the wire
//
//   - The client sends Fencing-Token: the token, in decimal.
//   - A token smaller than the largest that the resource has seen is answered with
//     409 Conflict, and Fencing-Token-Highest: that largest one. The handler does
//     not run.
//   - A request without the header is answered with 428 Precondition Required, one
//     whose header is no token with 400 Bad Request. GET, HEAD and OPTIONS need no
//     token; with one, they are judged like any other.
//   - 503 Service Unavailable: it could not be judged, and the handler did not run.
//
// # What it protects
//
// Judging a request is not yet protecting what its handler does: a handler may be
// slow, and a request with a larger token come in before it is done. So in one
// server process, requests of one resource with different tokens run one after
// the other: a larger token waits for handlers of smaller ones to return, and
// from the moment it waits, smaller ones are refused. That protects everything a
// handler has done when it returns.
//
// Where several processes serve a resource, a Memory that they share remembers
// tokens for all of them, and over restarts, but does not make a process wait for
// the handlers of another. Then the handler itself must hand the token on, to
// what finally keeps the data: TokenFrom gives it the token, guard/sqlguard and
// guard/redisguard take it, and Refuse answers with what they say.
package httpguard
