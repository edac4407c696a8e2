// Package httpguard carries fencing tokens over HTTP: a client sends the token of
// its lease with every request, and a server refuses requests of holders whose
// lease is over. It knows nothing of locks, only fencing tokens.
//
// # On the wire
//
//   - The client sends the token, in decimal, in the header Fencing-Token.
//   - If the resource has accepted a larger token, the server answers 409 Conflict,
//     with that token in the header Fencing-Token-Highest.
//   - If the header is missing, the server answers 428 Precondition Required.
//     Requests with GET, HEAD and OPTIONS need no token, but if they have one it
//     is checked, and counts.
//   - If the header is not a token, or leaps so far ahead that it cannot be that of a
//     lease (see Options.Leap), the server answers 400 Bad Request.
//   - If the token could not be checked, or its turn did not come in time, it answers
//     503 Service Unavailable.
//
// The handler runs in none of these error cases, except that a shared Memory may fail, or
// learn of a larger token, while the handler runs.
//
// # When a token counts
//
// A token counts, so that smaller ones are refused from then on, when the handler accepts
// its request: when it begins an answer, takes over the connection, or returns. An answer
// with a status of 400 to 499 means that the handler refused the request and did nothing,
// and such a token does not count. A handler that panics, or answers with 500 or more,
// may have written before, so its token counts.
//
// Put authentication in front of the guard, so that only those requests reach it that may
// write:
//
//	authenticate(httpguard.New(handler, resource, nil))
//
// The guard protects holders from late holders, not from attackers. A handler that
// authenticates behind the guard, and answers 401 or 403 before it reads the body, locks
// nobody out. But a request that gets past the guard without a right to write can occupy
// the gate, or have its token accepted by a public GET.
//
// # What it protects
//
// Checking the token of a request does not by itself protect what its handler
// does: a request with a larger token may arrive while a slow handler runs.
// Within one server process, requests for one resource with different tokens
// therefore run one after the other, in the order of their arrival. This protects
// everything that a handler has done when it returns, or, if it has taken over the
// connection, as a websocket does, when that connection is closed.
//
// A handler does not keep later holders out for long: Options.Grace after a larger token
// began to wait, the context of its request ends, reading the body and writing the answer
// fail, and a connection that was taken over is closed. A handler that ignores all of that
// is waited for, and later holders get 503 until it returns. A read of the body that has
// begun ends at once only if an http.ResponseController can set deadlines: a handler in
// front of the guard that wraps its http.ResponseWriter has to give that an Unwrap method.
//
// If several processes serve a resource, they need a shared Memory. It remembers
// tokens for all of them, also across restarts, but one process does not wait for
// the handlers of another, and a process that crashes before its handler has answered
// remembers nothing. The handler must then pass the token on to the store
// that keeps the data: TokenFrom returns the token, guard/sqlguard and
// guard/redisguard check it, and Refuse turns their error into an answer.
package httpguard
