package guardtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// holderEnv is set in processes of this test binary that hold a lock, to the task in JSON.
const holderEnv = "GUARDTEST_HOLDER"

// task is what a holder does.
type task struct {
	Goods   goods
	Redis   string // where the lock is
	Lock    string
	Guarded bool
	Inside  bool // wait within the transaction, not before it
}

// report is what a holder prints of its progress.
type report struct {
	Token  fence.Token
	Wrote  bool
	Stale  *fence.StaleError // refused for
	Failed string            // by anything else
}

// lockTTL is how long a stopped holder keeps its lock.
const lockTTL = 300 * time.Millisecond

// acquire waits for the lock.
func acquire(ctx context.Context, url, name string) (*leasehold.Lease, func(), error) {
	// The timeout is longer than the TTL, for busy machines: a grant that comes too late is
	// released.
	st, err := redisstore.Open(ctx, url, &redisstore.Options{NodeTimeout: 10 * time.Second})
	if err != nil {
		return nil, nil, err
	}
	lease, err := leasehold.New(st, nil).Mutex(name).With(leasehold.LockOptions{TTL: lockTTL}).Acquire(ctx)
	if err != nil {
		st.Close()
		return nil, nil, err
	}
	return lease, func() { lease.Release(context.WithoutCancel(ctx)); st.Close() }, nil
}

// beHolder takes the lock, reads, reports its token, waits for a line, and writes without a
// check of its lease.
func beHolder() {
	say := json.NewEncoder(os.Stdout)
	in := bufio.NewReader(os.Stdin)
	fail := func(err error) {
		say.Encode(report{Failed: err.Error()})
		os.Exit(1)
	}
	var job task
	if err := json.Unmarshal([]byte(os.Getenv(holderEnv)), &job); err != nil {
		fail(err)
	}
	ctx := context.Background()
	data, err := job.Goods.open()
	if err != nil {
		fail(err)
	}
	lease, _, err := acquire(ctx, job.Redis, job.Lock)
	if err != nil {
		fail(err)
	}
	think := func() {
		say.Encode(report{Token: lease.Token()})
		if _, err := in.ReadString('\n'); err != nil {
			fail(err)
		}
	}
	w := writer{token: lease.Token(), guarded: job.Guarded, name: "A"}
	if job.Inside {
		err = data.(*sqlGoods).change(ctx, w, think)
	} else {
		var before string
		if before, err = data.begin(ctx, w); err != nil {
			fail(err)
		}
		think()
		err = data.write(ctx, w, before)
	}
	r := report{Token: lease.Token(), Wrote: err == nil}
	switch {
	case err == nil:
	case errors.As(err, &r.Stale):
	default:
		r.Failed = err.Error()
	}
	if err := say.Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(0)
}
