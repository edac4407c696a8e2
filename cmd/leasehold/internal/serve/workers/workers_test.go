package workers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Work that stalls holds up no other, and goroutines that are idle take the next. They end with
// the pool, which then still carries out work.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, stall := make(chan struct{}), make(chan struct{})
		var done atomic.Int64
		p := New(ended, func(stalls bool) {
			if stalls {
				<-stall
			}
			done.Add(1)
		})
		for i := range 2 * mostIdle {
			p.Run(i%2 == 0)
		}
		synctest.Wait()
		if n := done.Load(); n != mostIdle {
			t.Errorf("%d are done, want all %d that do not stall", n, mostIdle)
		}
		close(stall)
		synctest.Wait()
		if done, idle := done.Load(), p.idle.Load(); done != 2*mostIdle || idle != mostIdle {
			t.Errorf("%d are done and %d goroutines are idle, want %d and %d", done, idle, 2*mostIdle, mostIdle)
		}
		p.Run(false)
		synctest.Wait()
		close(ended)
		p.Run(false)
		synctest.Wait()
		if done, idle := done.Load(), p.idle.Load(); done != 2*mostIdle+2 || idle != 0 {
			t.Errorf("after the end %d are done and %d goroutines are idle, want %d and none", done, idle, 2*mostIdle+2)
		}
	})
}
