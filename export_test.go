package leasehold

// Queues is how many queues a client keeps.
func (c *Client) Queues() int {
	c.renewer.mu.Lock()
	defer c.renewer.mu.Unlock()
	return len(c.renewer.queues)
}

// Waiting is how many goroutines are in them.
func (c *Client) Waiting() (n int) {
	c.renewer.mu.Lock()
	defer c.renewer.mu.Unlock()
	for _, q := range c.renewer.queues {
		n += q.m.Len()
	}
	return n
}
