package session

import "slices"

// Watch tells when a node changes, or has other children. It does so once. It is set on one
// connection and ends with that: a waiter then looks, and sets another.
type Watch struct {
	// Over is closed at the change, or when the connection has broken.
	Over chan struct{}
	path string
	ask  Request
	wire *wire // on which it is set, or nil
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

// Request returns the request that sets the watch. It is sent once: a watch cannot be set again.
func (w *Watch) Request() Request { return w.ask }

// Stop ends the watch for this process. The server may still announce one change, to nobody.
func (w *Watch) Stop() {
	if w == nil || w.wire == nil {
		return
	}
	w.wire.mu.Lock()
	defer w.wire.mu.Unlock()
	left := slices.DeleteFunc(w.wire.watches[w.path], func(other *Watch) bool { return other == w })
	if len(left) == 0 {
		delete(w.wire.watches, w.path)
	} else {
		w.wire.watches[w.path] = left
	}
}

// watchLocked sets a watch, before its request leaves: so no announcement is missed.
func (w *wire) watchLocked(of *Watch) {
	of.wire = w
	w.watches[of.path] = append(w.watches[of.path], of)
}

// announced takes an announcement of the server, and reports whether it was for a Watch.
func (w *wire) announced(event []byte) bool {
	f := fields{rest: event}
	f.take(8) // what has changed, and the state of the connection
	path := f.bytes()
	w.mu.Lock()
	told := w.watches[string(path)]
	delete(w.watches, string(path))
	w.mu.Unlock()
	for _, of := range told {
		close(of.Over)
	}
	return len(told) > 0
}

// announcement is the number of an answer that announces a change.
const announcement = -1
