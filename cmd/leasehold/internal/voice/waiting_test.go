package voice

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// Without a terminal, a wait that has no news prints a line now and then, ever less often.
func TestWaitIsToldNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &Voice{queue: make(chan utterance, 100)}
		w := NewWaiting(v, "x", 0)
		busy := &leasehold.BusyError{Name: "x", Holder: store.Holder{Owner: "o", Host: "h", PID: 7, Since: time.Now()}, ExpiresIn: 30 * time.Second, Position: 2}
		var at []time.Duration
		began := time.Now()
		take := func() {
			for len(v.queue) > 0 {
				u := <-v.queue
				at = append(at, time.Since(began))
				if !strings.Contains(u.text, `for "x", 1 ahead in the queue; held by h pid 7`) {
					t.Errorf("%q, want the holder and the place in the queue", u.text)
				}
			}
		}
		for range 120 { // 20 minutes
			w.Because(busy)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			take()
		}
		w.End()
		if len(at) < 6 || len(at) > 12 || at[1] > 30*time.Second {
			t.Errorf("lines after %v, want one soon, and fewer later", at)
		}
	})
}
