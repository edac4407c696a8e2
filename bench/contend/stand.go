package contend

import (
	"context"
	"fmt"
	"io"
	"sync"

	lh "github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/locks"
)

// stand waits for the lock, reports when it has a place in the queue, holds the lock
// once and releases it.
func (s Spec) stand(told <-chan string, out io.Writer) error {
	ctx := context.Background()
	st, client, err := locks.Leasehold(ctx, s.Addrs, nil)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer st.Close()
	fmt.Fprintln(out, ready)
	<-told
	var once sync.Once
	o := lh.LockOptions{TTL: s.TTL, OnWait: func(error) { once.Do(func() { fmt.Fprintln(out, waiting) }) }}
	h := Hold{Asked: Now()}
	var lease *lh.Lease
	err = locks.Insist(ctx, func(ctx context.Context) (err error) {
		lease, err = client.Mutex(s.Lock).With(o).Acquire(ctx)
		return err
	})
	if err != nil {
		return err
	}
	h.Got = Now()
	once.Do(func() { fmt.Fprintln(out, waiting) })
	h.Freed = Now()
	return reportOne(out, h, lease.Release(ctx))
}
