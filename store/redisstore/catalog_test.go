package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// A listing has bounds in memory and in time, whatever the server finds.
func TestCatalogIsBounded(t *testing.T) {
	c := newCatalog(func(key string) (string, bool) { return key, key != "no" })
	c.left = 1000
	for i := range 1000 {
		c.add("no")
		c.add("twice")
		if c.full() != nil {
			break
		}
		c.add(fmt.Sprint("lock", i))
	}
	if err := c.full(); !errors.Is(err, store.ErrIncomplete) {
		t.Errorf("with 1000 bytes of names: %v, want %v", err, store.ErrIncomplete)
	}
	if n := len(c.found); n < 5 || n > 1000/listEntry+1 || c.found["no"] {
		t.Errorf("%d names found in 1000 bytes: %v", n, c.found)
	}
	c = newCatalog(c.nameOf)
	if err := c.full(); err != nil {
		t.Errorf("an empty catalog is full: %v", err)
	}
	c.until = time.Now().Add(-1)
	if err := c.full(); !errors.Is(err, store.ErrIncomplete) {
		t.Errorf("after the time is over: %v, want %v", err, store.ErrIncomplete)
	}
}
