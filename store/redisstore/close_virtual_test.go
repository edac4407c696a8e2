package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Close returns at the moment at which the last answer arrives. The network's delay is no
// multiple of any interval at which Close could look.
func TestCloseReturnsWithTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, hosts := bubbled(t, 3)
		s := openBubbled(t, network, hosts, nil)
		const delay = 4*time.Millisecond + 333*time.Microsecond
		network.Delay = delay
		var asking sync.WaitGroup
		asking.Go(func() { s.Acquire(context.Background(), store.AcquireRequest{Lease: request("a")}) })
		synctest.Wait() // until the request is sent
		start := time.Now()
		s.Close()
		if took := time.Since(start); took == 0 || took%delay != 0 {
			t.Errorf("Close took %v, which is not a multiple of %v", took, delay)
		}
		asking.Wait()
	})
}
