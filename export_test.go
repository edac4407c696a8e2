package leasehold

// Queues is how many queues a client keeps.
func (c *Client) Queues() int {
	c.keep.mu.Lock()
	defer c.keep.mu.Unlock()
	return len(c.keep.queues)
}

// Waiting is how many goroutines are in them.
func (c *Client) Waiting() (n int) {
	c.keep.mu.Lock()
	defer c.keep.mu.Unlock()
	for _, q := range c.keep.queues {
		n += q.length()
	}
	return n
}
