// Package remotestore keeps locks in the store of a server, "leasehold serve", over HTTP. A
// program then needs the address of the server and a token, and no password of a database. It
// keeps the guarantees of the store behind the server, and needs only the standard library.
//
//	st, err := remotestore.Open(ctx, "https://locks.example.com", &remotestore.Options{Token: token})
//
// Several servers of the same store can be given: https://a.example.com,b.example.com. Requests
// go to one of them, and to the next while it does not answer. Leases live in the store behind
// them, so they outlive each server, and each server goes on with the leases of the others.
//
// A holder learns of a lease that somebody broke at its next renewal, a third of the TTL later at
// most. Servers tell of breaks earlier only to clients that may look at locks, and to do so they
// look at all locks once a second.
//
// # URLs
//
//	https://HOST[:PORT][,HOST[:PORT]...][/PREFIX][?token_file=FILE&ca=FILE&cert=FILE&key=FILE&timeout=TIME]
//	http://127.0.0.1:7420
//
// http is for the loopback interface of this machine only: anybody on the way could read the
// token and release locks. store.Open knows both schemes if a program imports the package. The
// token can also be in the variable LEASEHOLD_TOKEN.
//
// # Many goroutines
//
// Up to four calls at a time are requests of their own. Calls that come while so many are under
// way gather for at most two milliseconds, and go as one request.
//
// # Time
//
// The validity of a lease counts from before the request was sent, as with every store. A grant
// that ends a wait counts from when the server sent the granted request to its store. That is a
// time on the server's clock, so it is cut by the 1 % by which clocks may differ, and renewed
// after a long wait.
//
// # Faults
//
// A request that gets no answer is sent again, to another server if there is one. That is safe:
// acquire and renew may be repeated, and servers remember for a minute what was released. If the
// outcome stays unknown, the attempt is taken back in the background, from each server that may
// still receive it.
package remotestore
