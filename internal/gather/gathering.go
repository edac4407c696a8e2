package gather

import "slices"

// Limits say how much happens at once.
type Limits struct {
	// Alone is how many steps are made alone at once before others go together. So a few
	// goroutines are as fast as without batches: a batch costs more than a few single steps.
	Alone int
	// Senders is how many goroutines send batches at once, and Steps how many steps are in
	// one of them.
	Senders, Steps int
}

// gathering decides which steps go to the server together: those that queue while batches are
// under way. No step queues behind one that is made alone: in a database, that may have to wait
// for a transaction that relies on the lease.
type gathering[S comparable] struct {
	Limits
	senders int
	alone   int  // steps that are being made alone
	busy    bool // the last batch had several steps
	queue   []S
}

// goesAlone reports whether a step is made alone, at once. Then left follows.
func (g *gathering[S]) goesAlone() bool {
	if g.busy || g.alone == g.Alone || g.senders > 0 {
		return false
	}
	g.alone++
	return true
}

// left ends a step that was made alone.
func (g *gathering[S]) left() { g.alone-- }

// add adds a step to the queue. It reports whether a goroutine has to start to send batches.
func (g *gathering[S]) add(s S) (start bool) {
	g.queue = append(g.queue, s)
	if g.senders == g.Senders {
		return false
	}
	g.senders++
	return true
}

// more reports whether the goroutine that asks has another batch to send. If not, it ends.
func (g *gathering[S]) more() bool {
	if len(g.queue) == 0 {
		g.senders--
		return false
	}
	return true
}

// take takes the steps of a batch from the queue.
func (g *gathering[S]) take() []S {
	n := min(len(g.queue), g.Steps)
	batch := slices.Clone(g.queue[:n])
	clear(g.queue[:n]) // the array may last
	g.queue = g.queue[n:]
	g.busy = n > 1
	return batch
}

// withdraw takes a step out of the queue. It reports whether the step was there.
func (g *gathering[S]) withdraw(s S) bool {
	i := slices.Index(g.queue, s)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	return i >= 0
}
