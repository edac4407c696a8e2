package zkstore

import "sync"

// atOnce is how many leases are renewed, or locks are read, at the same time.
const atOnce = 32

// each calls do for 0 to n-1, some of them at the same time.
func each(n int, do func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, atOnce) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
