package leasehold

// Queues is how many queues a client keeps.
func (c *Client) Queues() int {
	c.keep.mu.Lock()
	defer c.keep.mu.Unlock()
	return len(c.keep.queues)
}
