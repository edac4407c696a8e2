package zk

// Watch tells when a node changes, or has other children. It does so once. It is set on one
// connection and ends with that: a waiter then looks, and sets another.
type Watch struct {
	// Over is closed at the change, or when the connection has broken.
	Over chan struct{}
	// Deleted is set, before Over is closed, if the change is the end of the node.
	Deleted bool
	ask     Request
	conn    *conn // on which it is set, or nil
}

// WatchNode returns a watch for a change of the data of a node, or for its end. Its request
// also reads the node. There is no watch if there is no such node.
func WatchNode(path string) *Watch { return newWatch(reads(opGetData, path, 1)) }

// WatchList returns a watch for a change of the children of a node. Its request also lists
// them.
func WatchList(path string) *Watch { return newWatch(reads(opGetChildren2, path, 1)) }

// WatchExists returns a watch for a change of the data of a node, or for its beginning or end.
func WatchExists(path string) *Watch { return newWatch(reads(opExists, path, 1)) }

func newWatch(ask Request) *Watch {
	w := &Watch{Over: make(chan struct{}), ask: ask}
	w.ask.watch = w
	return w
}

// Request returns the request that sets the watch. It is sent once: a watch cannot be set again.
func (w *Watch) Request() Request { return w.ask }

// Stop ends the watch for this process. The server may still announce one change, to nobody.
func (w *Watch) Stop() {
	if w != nil && w.conn != nil {
		w.conn.unwatch(w)
	}
}
