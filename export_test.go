package leasehold

import "time"

// Queues returns how many queues the client keeps.
func (c *Client) Queues() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.known)
}

// Waiting returns how many goroutines are in them.
func (c *Client) Waiting() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.known {
		n += q.m.Len()
	}
	return n
}

// WatchesReservations reports whether a timer is about to look at the places that no goroutine has
// claimed.
func (c *Client) WatchesReservations() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reservations.running
}

// ByClock returns t as of a machine with that clock.
func (t Tick) ByClock(now func() time.Time) Tick {
	t.now = now
	return t
}
