package leasehold

import (
	"reflect"
	"sync"
	"time"
)

// Queues returns how many queues the client keeps.
func (c *Client) Queues() int {
	queues, _ := c.queues.Len()
	return queues
}

// Waiting returns how many goroutines are in them.
func (c *Client) Waiting() int {
	_, waiters := c.queues.Len()
	return waiters
}

// HoldQueues keeps the mutex of the queues until letGo is called.
func (c *Client) HoldQueues() (letGo func()) {
	mutex := (*sync.Mutex)(c.ofQueues("mutex").Addr().UnsafePointer())
	mutex.Lock()
	return mutex.Unlock
}

// WatchesReservations reports whether a timer is about to look at the places that no goroutine has
// claimed.
func (c *Client) WatchesReservations() bool {
	defer c.HoldQueues()()
	return c.ofQueues("reservations").FieldByName("running").Bool()
}

// ofQueues returns a field of the queues, of which other programs need none.
func (c *Client) ofQueues(field string) reflect.Value {
	return reflect.ValueOf(c.queues).Elem().FieldByName(field)
}

// ByClock returns t as of a machine with that clock.
func (t Tick) ByClock(now func() time.Time) Tick {
	t.now = now
	return t
}
