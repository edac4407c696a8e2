package zk

import (
	"maps"
	"slices"
)

// Watch tells when a node changes, or has other children. It does so once. A watch that WatchNode
// returns lasts for the session: on the next connection the server tells what has changed since the last
// answer. Others end with their connection: a waiter then looks, and sets another.
type Watch struct {
	// Over is closed at the change, or if the watch has ended without one.
	Over chan struct{}
	// Deleted is set, before Over is closed, if the change is the end of the node and was announced on
	// the connection on which the watch was set. There changes are announced in their order. Of
	// changes before a later connection only the last one of each node is announced.
	Deleted bool
	ask     Request
	session *Session // in which it is set, or nil
	again   bool     // it was set again, on a later connection
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
	if w != nil && w.session != nil {
		ss := w.session
		ss.mu.Lock()
		defer ss.mu.Unlock()
		ss.dropLocked(w.ask.Path, func(other *Watch) bool { return other == w })
	}
}

// watch notes a watch that is about to be set.
func (ss *Session) watch(w *Watch) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	w.session = ss
	ss.watches[w.ask.Path] = append(ss.watches[w.ask.Path], w)
}

// dropLocked drops some of the watches of a node.
func (ss *Session) dropLocked(path string, drops func(*Watch) bool) {
	left := slices.DeleteFunc(ss.watches[path], drops)
	if ss.watches[path] = left; len(left) == 0 {
		delete(ss.watches, path)
	}
}

// announced ends the watches of a node that has changed.
func (ss *Session) announced(path string, deleted bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, w := range ss.watches[path] {
		w.Deleted = deleted && !w.again
		close(w.Over)
	}
	delete(ss.watches, path)
}

// endWatches ends those watches that end with their connection, or all.
func (ss *Session) endWatches(all bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for path := range ss.watches {
		ss.dropLocked(path, func(w *Watch) bool {
			ends := all || w.ask.op != opGetData
			if ends {
				close(w.Over)
			}
			return ends
		})
	}
}

// mostAgain is how many bytes of paths one request has watched again: a server ends the connection after
// a request of more than a megabyte.
const mostAgain = 512 << 10

// watchAgain has the server announce what has changed in all watched nodes since the last zxid of the
// session. It is the first request on the connection: a later answer would raise that zxid, and changes
// before it would never be announced.
func (c *conn) watchAgain() {
	ss := c.session
	ss.mu.Lock()
	since, paths := ss.zxid, slices.Collect(maps.Keys(ss.watches))
	for _, of := range ss.watches {
		for _, w := range of {
			w.again = true
		}
	}
	ss.mu.Unlock()
	for len(paths) > 0 {
		n, size := 0, 0
		for ; n < len(paths) && size < mostAgain; n++ {
			size += len(paths[n]) + 4 // its length comes before it
		}
		c.ask(watchAgain(since, paths[:n]))
		paths = paths[n:]
	}
}
