package callback

import "sync"

// Notifier calls functions one after the other, in the order in which they were added,
// on a goroutine that exists only while there are any. It is safe for concurrent use.
type Notifier struct {
	// Guard runs the functions. It must be set before the first Add.
	Guard Guard

	mu      sync.Mutex
	pending []func()
	running bool
}

// Add has f called soon. It does not block, so its caller may hold a mutex.
func (n *Notifier) Add(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = append(n.pending, f)
	if !n.running {
		n.running = true
		go n.run()
	}
}

func (n *Notifier) run() {
	done := false
	defer func() {
		if !done { // the function ended this goroutine
			go n.run()
		}
	}()
	for {
		n.mu.Lock()
		if len(n.pending) == 0 {
			n.running, done = false, true
			n.mu.Unlock()
			return
		}
		f := n.pending[0]
		n.pending = n.pending[1:]
		n.mu.Unlock()
		n.Guard.Run(f, nil)
	}
}
