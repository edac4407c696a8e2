package sqlstore

import "sync"

const (
	// mostKnown is how many locks a process remembers for which it has sent batches.
	mostKnown = 4096
	// apartFor is how many steps are made alone after one that a batch left. To try in vain
	// takes a round trip.
	apartFor = 32
)

// prospects reports whether a batch is likely to make a step. A batch makes no step of a lock that
// has waiters, and no request for a new lock. It is safe for concurrent use.
type prospects struct {
	mu sync.Mutex
	// known has the locks that this process released lately, and how many of the next steps
	// of each are made alone.
	known map[string]int
	// others is how many of the next requests for other locks are made alone.
	others int
}

// learn notes that a lock exists.
func (p *prospects) learn(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, is := p.known[name]; is {
		return
	}
	if p.known == nil {
		p.known = make(map[string]int)
	}
	if len(p.known) == mostKnown {
		for any := range p.known {
			delete(p.known, any)
			break
		}
	}
	p.known[name] = 0
}

// good reports whether a batch is likely to make a step of a lock.
func (p *prospects) good(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, is := p.known[name]
	switch {
	case is && n > 0:
		p.known[name] = n - 1
		return false
	case !is && p.others > 0:
		p.others--
		return false
	}
	return true
}

// left notes that a batch left a step of a lock.
func (p *prospects) left(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, is := p.known[name]; is {
		p.known[name] = apartFor
	} else {
		p.others = apartFor
	}
}
