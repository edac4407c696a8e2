package leasehold

import "github.com/leasehold-dev/leasehold/store"

// Client asks one store for locks and renews the leases it is granted. It is safe
// for concurrent use; make one per store and share it. A Client has no Close: it
// runs goroutines only while leases are held or waited for, a few however many
// leases there are, and some more while the store does not answer. The store stays the caller's to close, after the leases
// are released.
type Client struct {
	// Each part embeds the one below it: queues know holds, and holds know the core.
	queues
}

// New returns a Client of s. It sends nothing. A nil o means the defaults.
func New(s *store.Store, o *Options) *Client {
	if o == nil {
		o = &Options{}
	}
	c := &Client{}
	c.core.init(s, o)
	c.mu.Lock() // on a slow machine a timer may fire before it is stopped
	defer c.mu.Unlock()
	c.holds.init()
	c.queues.init()
	if breaksPushed && s.Caps().Notifies {
		c.listen(s)
	}
	return c
}

// Mutex returns the lock of that name, which one holder at a time can have. It
// sends nothing; an invalid name is reported when the lock is acquired.
func (c *Client) Mutex(name string) *Lock { return newLock(&c.queues, name, claim{}) }
