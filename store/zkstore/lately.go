package zkstore

import "sync"

// lately remembers some locks that were busy when they were last asked for: there it
// pays to look before a place is made.
type lately struct {
	mu    sync.Mutex
	names map[string]struct{}
}

const mostLately = 1000

func (l *lately) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil || len(l.names) >= mostLately {
		l.names = make(map[string]struct{})
	}
	l.names[name] = struct{}{}
}

func (l *lately) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
}

func (l *lately) lately(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.names[name]
	return ok
}
