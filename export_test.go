package leasehold

import "time"

// Queues returns how many queues the client keeps.
func (c *Client) Queues() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.known)
}

// Waiting returns how many goroutines are in them.
func (c *Client) Waiting() (n int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, q := range c.known {
		n += q.m.Len()
	}
	return n
}

// WatchesReservations reports whether a timer is about to look at the places that no goroutine has
// claimed.
func (c *Client) WatchesReservations() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.reservations.running
}

// ByClock returns t as of a machine with that clock.
func (t Tick) ByClock(now func() time.Time) Tick {
	t.now = now
	return t
}

// HoldQueues keeps the mutex of the queues until letGo is called.
func (c *Client) HoldQueues() (letGo func()) {
	c.mutex.Lock()
	return c.mutex.Unlock
}
