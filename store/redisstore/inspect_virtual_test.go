package redisstore_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// One server grants the lock later than the others, and its counter is ahead of theirs or
// behind. Inspect shows the token of the grant all the same, whichever server is silent.
func TestInspectShowsTheTokenOfTheGrant(t *testing.T) {
	for _, handed := range []bool{false, true} {
		for odd := range 3 {
			for _, ahead := range []bool{true, false} {
				for silent := range 3 {
					t.Run(fmt.Sprintf("handed=%t/odd=%d/ahead=%t/silent=%d", handed, odd, ahead, silent), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							network, hosts := bubbled(t, 3)
							holder, other := openBubbled(t, network, hosts, nil), openBubbled(t, network, hosts, nil)
							var before store.Lease
							waits := patientWaiter("lock")
							got := make(chan store.Grant, 1)
							if handed {
								before = request("lock")
								acquire(t, other, before)
								go func() {
									g, err := holder.Wait(t.Context(), store.WaitRequest{Lease: waits}, nil)
									if err != nil {
										t.Error(err)
									}
									got <- g
								}()
								synctest.Wait()
								time.Sleep(time.Second)
							}
							counter := strconv.FormatInt(time.Now().Add(500*time.Millisecond).UnixMicro(), 10)
							for i, h := range hosts {
								if (i == odd) == ahead {
									h.Do("SET", "{lock}:token", counter)
								}
							}
							hosts[odd].Silence()
							var g store.Grant
							if handed {
								if err := other.Release(t.Context(), store.ReleaseRequest{Lease: before}); err != nil {
									t.Fatal(err)
								}
								g = <-got
							} else {
								g = acquire(t, holder, request("lock"))
							}
							hosts[odd].Speak()
							time.Sleep(100 * time.Millisecond) // until its answers, and the requests to it, have arrived
							hosts[silent].Silence()
							defer hosts[silent].Speak()
							state, err := other.Inspect(t.Context(), "lock")
							if err != nil {
								t.Fatal(err)
							}
							if state.Token != g.Token {
								t.Errorf("token %d, want %d", state.Token, g.Token)
							}
						})
					})
				}
			}
		}
	}
}
