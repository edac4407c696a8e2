package redisstore

import "sync/atomic"

// bell wakes up one goroutine that waits for something to change. While nobody waits,
// ringing costs one load.
type bell struct {
	awaited atomic.Bool
	rung    chan struct{}
}

// await returns a channel that has a value if the bell has rung since the last value was
// taken. It is called once.
func (b *bell) await() <-chan struct{} {
	b.rung = make(chan struct{}, 1)
	b.awaited.Store(true)
	return b.rung
}

func (b *bell) ring() {
	if !b.awaited.Load() {
		return
	}
	select {
	case b.rung <- struct{}{}:
	default:
	}
}
