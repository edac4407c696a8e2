package session

import "github.com/leasehold-dev/leasehold/internal/clock"

// Watch tells when a node changes, or has other children. It does so once. It is set on one
// connection and ends with that: a waiter then looks, and sets another.
type Watch struct {
	// Over is closed at the change, or when the connection has broken. If requests follow the
	// change, it is closed when they are answered.
	Over chan struct{}
	// Deleted is set, before Over is closed, if the change is the end of the node.
	Deleted bool
	path    string
	ask     Request
	then    []Request
	// followed are the answers to then, once they have come. proven is what Session.Proven
	// returned just before then left.
	followed []Answer
	proven   clock.Instant
	// forget takes it out of the watches of its connection. It is nil until it is set.
	forget func(*Watch)
}

// WatchNode returns a watch for a change of the data of a node, or for its end. Its request
// also reads the node. There is no watch if there is no such node.
func WatchNode(path string) *Watch {
	return newWatch(path, Request{op: opGetData, body: append(str(path), 1)})
}

// WatchList returns a watch for a change of the children of a node. Its request also lists
// them.
func WatchList(path string) *Watch {
	return newWatch(path, Request{op: opGetChildren2, body: append(str(path), 1)})
}

func newWatch(path string, ask Request) *Watch {
	w := &Watch{Over: make(chan struct{}), path: path, ask: ask}
	w.ask.watch = w
	return w
}

// Then has requests sent as soon as the change is announced, and returns the watch. The goroutine
// that reads the announcement sends them, so that the waiter is woken up once and not twice.
func (w *Watch) Then(requests ...Request) *Watch {
	w.then = requests
	return w
}

// Followed returns the answers to the requests that followed the change, once Over is closed, and
// what Session.Proven returned before they left. It returns no answers if no change was announced.
func (w *Watch) Followed() ([]Answer, clock.Instant) { return w.followed, w.proven }

// Request returns the request that sets the watch. It is sent once: a watch cannot be set again.
func (w *Watch) Request() Request { return w.ask }

// Stop ends the watch for this process. The server may still announce one change, to nobody.
func (w *Watch) Stop() {
	if w != nil && w.forget != nil {
		w.forget(w)
	}
}
