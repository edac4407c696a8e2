package serve

import (
	"sync"
	"time"
)

// limits count what each client uses. The zero value is ready.
type limits struct {
	mu      sync.Mutex
	clients map[string]*usage
	sweep   int // requests until usage that is nil is dropped
}

// usage is what one client uses.
type usage struct {
	tokens  float64 // requests that it may send at once, as of seen
	seen    time.Time
	streams int
	names   map[string]int // the locks that its streams are about, and how many are
}

func (l *limits) of(who string) *usage {
	if l.clients == nil {
		l.clients = map[string]*usage{}
	}
	u := l.clients[who]
	if u == nil {
		u = &usage{names: map[string]int{}}
		l.clients[who] = u
	}
	return u
}

// request reports whether the client may send a request now, of most a second. It may send as
// many at once. Zero means no limit.
func (l *limits) request(who string, most int, now time.Time) bool {
	if most <= 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sweep--; l.sweep < 0 { // clients that were gone for a second have all their tokens again
		for name, u := range l.clients {
			if u.streams == 0 && now.Sub(u.seen) > time.Second {
				delete(l.clients, name)
			}
		}
		l.sweep = 1000 + len(l.clients)
	}
	u := l.of(who)
	if u.seen.IsZero() {
		u.tokens = float64(most)
	} else {
		u.tokens = min(float64(most), u.tokens+now.Sub(u.seen).Seconds()*float64(most))
	}
	u.seen = now
	if u.tokens < 1 {
		return false
	}
	u.tokens--
	return true
}

// begin counts a stream about the lock called name, unless that would be more than the client
// may have. It returns which limit was reached. The caller calls end afterwards. Zero means no
// limit.
func (l *limits) begin(who, name string, mostStreams, mostNames int) (reached string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of(who)
	switch {
	case mostStreams > 0 && u.streams >= mostStreams:
		reached = "holds and waits"
	case mostNames > 0 && u.names[name] == 0 && len(u.names) >= mostNames:
		reached = "names of locks"
	default:
		u.streams++
		u.names[name]++
	}
	return reached
}

// end takes back begin.
func (l *limits) end(who, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of(who)
	u.streams--
	if u.names[name]--; u.names[name] == 0 {
		delete(u.names, name)
	}
	if u.streams == 0 && u.seen.IsZero() {
		delete(l.clients, who)
	}
}
