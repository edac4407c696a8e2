package redis

import (
	"errors"
	"sync"

	"github.com/leasehold-dev/leasehold/store"
)

// line is what waits to be sent to a node. Putting never blocks.
type line struct {
	mu     sync.Mutex
	calls  []call
	closed bool
	ready  chan struct{}
}

// maxLine bounds what waits for one node; a full line counts as a node that
// can not be reached.
const maxLine = 16384

var errLineFull = errors.New("too many requests wait for it")

func (l *line) init() { l.ready = make(chan struct{}, 1) }

func (l *line) put(c call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return store.ErrClosed
	case len(l.calls) >= maxLine:
		return errLineFull
	}
	l.calls = append(l.calls, c)
	if len(l.calls) == 1 {
		l.signal()
	}
	return nil
}

func (l *line) signal() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// take moves up to most calls into batch; more says whether any remain, or
// ever will.
func (l *line) take(batch []call, most int) (_ []call, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(most, len(l.calls))
	batch = append(batch[:0], l.calls[:n]...)
	rest := copy(l.calls, l.calls[n:])
	clear(l.calls[rest:])
	l.calls = l.calls[:rest]
	if rest > 0 || l.closed {
		l.signal()
	}
	return batch, n > 0 || !l.closed
}

func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.signal()
}
