package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// The store decides which processes a lock excludes. Outside of tests it is usually
// store/redisstore or store/filestore.
func ExampleLock_Do() {
	locks := leasehold.New(memstore.New(nil), nil)

	err := locks.Mutex("invoices/42").Do(context.Background(), func(ctx context.Context, l *leasehold.Lease) error {
		// ctx ends, with cause ErrLost, before anybody else can hold the lock.
		fmt.Println("charging the card")
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// charging the card
	// <nil>
}

// Readers hold the lock together. A writer holds it alone.
func ExampleClient_RW() {
	locks := leasehold.New(memstore.New(nil), nil)
	ctx := context.Background()
	config := locks.RW("config")

	read := func(ctx context.Context, l *leasehold.Lease) error {
		other, err := config.Read().Try(context.Background()) // as another process would
		if err != nil {
			return err
		}
		fmt.Println("two readers, one token:", l.Token() == other.Token())
		_, err = config.Write().Try(context.Background())
		fmt.Println("a writer beside them:", errors.Is(err, leasehold.ErrBusy))
		return other.Release(ctx)
	}
	fmt.Println(config.Read().Do(ctx, read))
	// Output:
	// two readers, one token: true
	// a writer beside them: true
	// <nil>
}

// A writer lets others read what it wrote, and goes on reading.
func ExampleLease_Downgrade() {
	locks := leasehold.New(memstore.New(nil), nil)
	ctx := context.Background()
	index := locks.RW("index")

	writer, _ := index.Write().Acquire(ctx)
	fmt.Println("building the index")
	reader, err := writer.Downgrade(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reader.Release(ctx)
	other, err := index.Read().Try(ctx)
	fmt.Println("others read:", err == nil, other.Token() == reader.Token(), reader.Token() > writer.Token())
	other.Release(ctx)
	// Output:
	// building the index
	// others read: true true true
}

// The number of workers is lowered while they work. Nobody is stopped, and nobody new
// begins until enough of them have ended.
func ExampleOperator_Resize() {
	locks := leasehold.New(memstore.New(nil), nil)
	ctx := context.Background()
	first, _ := locks.Semaphore("workers", 2).Acquire(ctx)
	second, _ := locks.Semaphore("workers", 2).Acquire(ctx)

	fmt.Println(locks.Operator().Resize(ctx, "workers", 2, 1))
	first.Release(ctx)
	_, err := locks.Semaphore("workers", 1).Try(ctx)
	fmt.Println("beside the second:", errors.Is(err, leasehold.ErrBusy), second.Err())
	second.Release(ctx)
	// Output:
	// <nil>
	// beside the second: true <nil>
}

// At most three workers run at once, each with a number of its own.
func ExampleClient_Semaphore() {
	locks := leasehold.New(memstore.New(nil), nil)
	ctx := context.Background()
	workers := locks.Semaphore("workers", 3)

	light, _ := workers.Acquire(ctx)
	heavy, _ := workers.With(leasehold.LockOptions{Weight: 2}).Acquire(ctx)
	fmt.Println("slots", light.Slot(), heavy.Slot())

	_, err := workers.Try(ctx)
	fmt.Println("a fourth permit:", errors.Is(err, leasehold.ErrBusy))
	_, err = locks.Semaphore("workers", 5).Try(ctx)
	fmt.Println("another number of permits:", errors.Is(err, leasehold.ErrKindMismatch))
	light.Release(ctx)
	heavy.Release(ctx)
	// Output:
	// slots 0 1
	// a fourth permit: true
	// another number of permits: true
}

// One of all candidates leads, until its function returns or it loses the lock.
func ExampleElection() {
	locks := leasehold.New(memstore.New(nil), nil)
	scheduler := locks.Election("scheduler").With(leasehold.LockOptions{Purpose: "schedules jobs"})

	err := scheduler.Run(context.Background(), func(ctx context.Context, l *leasehold.Lease) error {
		leader, err := scheduler.Leader(ctx)
		fmt.Println("leading:", leader.Holder.Purpose, leader.Token == l.Token())
		return err // an error would make it a candidate again; nil ends Run
	})
	fmt.Println(err)

	for leader, err := range scheduler.Observe(context.Background()) {
		fmt.Println("nobody leads:", leader.Vacant(), err)
		break // it would go on with each change
	}
	// Output:
	// leading: schedules jobs true
	// <nil>
	// nobody leads: true <nil>
}

// Many machines start a job at the same time of day, and one of them runs it.
func ExampleClient_Once() {
	locks := leasehold.New(memstore.New(nil), nil)
	nightly := leasehold.Tick{Every: 24 * time.Hour, MaxHold: 6 * time.Hour}

	for _, machine := range []string{"a", "b"} {
		ran, err := locks.Once(context.Background(), "backup", nightly, func(ctx context.Context, l *leasehold.Lease) error {
			fmt.Println("backing up on", machine)
			return ctx.Err()
		})
		fmt.Println(ran, err)
	}
	// Output:
	// backing up on a
	// true <nil>
	// false <nil>
}

// Both accounts are locked, or neither.
func ExampleClient_All() {
	locks := leasehold.New(memstore.New(nil), nil)
	both := locks.All(locks.Mutex("account/7"), locks.Mutex("account/3"))

	err := both.Do(context.Background(), func(ctx context.Context, ls *leasehold.Leases) error {
		for _, l := range ls.Each() {
			fmt.Println(l.Name(), l.Token() > 0)
		}
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// account/3 true
	// account/7 true
	// <nil>
}

func ExampleLock_Try() {
	locks := leasehold.New(memstore.New(nil), nil)
	ctx := context.Background()
	report := locks.Mutex("report").With(leasehold.LockOptions{TTL: time.Minute, Purpose: "monthly figures", Owner: "worker-1"})

	lease, err := report.Try(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release(ctx)

	_, err = locks.Mutex("report").Try(ctx)
	var busy *leasehold.BusyError
	if errors.As(err, &busy) {
		fmt.Println("held by", busy.Holder)
	}
	// Output: held by worker-1
}

// A wait is bounded by its context; the lease lives on after it.
func ExampleLock_Acquire() {
	locks := leasehold.New(memstore.New(nil), nil)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lease, err := locks.Mutex("leader").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	select {
	case <-lease.Done():
		fmt.Println("lost:", lease.Err())
	default:
		fmt.Println("leading")
	}
	fmt.Println(lease.Release(context.Background()))
	// Output:
	// leading
	// <nil>
}

// An operator takes the lock away from a job that hangs. The token makes sure that it is the
// lease that the operator saw, and not that of the next holder.
func ExampleOperator_Break() {
	locks := leasehold.New(memstore.New(nil), nil)
	ctx := context.Background()

	held, ended := make(chan leasehold.Token), make(chan error)
	go func() {
		ended <- locks.Mutex("deploy").Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
			held <- l.Token()
			<-ctx.Done() // the job hangs, until it is notified that it has lost the lock
			return nil
		})
	}()

	token := <-held
	err := locks.Operator().Break(ctx, leasehold.BreakRequest{Name: "deploy", Token: token, By: "alice", Reason: "hangs since the upgrade"})
	fmt.Println("the lease is over:", err == nil)
	fmt.Println("the job knows:", errors.Is(<-ended, leasehold.ErrLost))

	next, _ := locks.Mutex("deploy").Acquire(ctx)
	defer next.Release(ctx)
	err = locks.Operator().Break(ctx, leasehold.BreakRequest{Name: "deploy", Token: token})
	fmt.Println("the next holder is left alone:", errors.Is(err, leasehold.ErrBusy), next.Err())
	// Output:
	// the lease is over: true
	// the job knows: true
	// the next holder is left alone: true <nil>
}

// A deployment waits for the end of the backup. It takes nothing, so another backup may
// begin at any time.
func ExampleOperator_WaitFree() {
	locks := leasehold.New(memstore.New(nil), nil)
	ctx := context.Background()

	backup, _ := locks.Mutex("backup").Acquire(ctx)
	go func() {
		fmt.Println("backing up")
		backup.Release(ctx)
	}()
	fmt.Println(locks.Operator().WaitFree(ctx, "backup", nil))
	// Output:
	// backing up
	// <nil>
}

// One process acquires a lock, and another one ends the lease. Nobody renews it, so it ends
// after its TTL if that process never comes to it.
func ExampleOperator_ReleaseOwner() {
	locks := leasehold.New(memstore.New(nil), nil)
	ctx := context.Background()

	lease, err := locks.Mutex("maintenance").With(leasehold.LockOptions{TTL: 10 * time.Minute, NoRenew: true}).Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	owner := lease.Owner() // the other process has to know it

	fmt.Println(locks.Operator().ReleaseOwner(ctx, "maintenance", owner))
	err = locks.Operator().ReleaseOwner(ctx, "maintenance", owner)
	fmt.Println("a second time:", errors.Is(err, leasehold.ErrLost))
	// Output:
	// <nil>
	// a second time: true
}

// table stands for a resource that remembers the largest token it has seen.
type table struct{ highest leasehold.Token }

func (t *table) write(token leasehold.Token) error {
	if token.Stale(t.highest) {
		return fmt.Errorf("refused: token %s is older than one already seen", "of the late writer")
	}
	t.highest = token
	return nil
}

// A holder that was paused may write after its lease is over. The resource can
// tell by the token.
func ExampleLease_Token() {
	locks := leasehold.New(memstore.New(nil), nil)
	ctx := context.Background()
	var rows table

	late, _ := locks.Mutex("rows").Acquire(ctx)
	late.Release(ctx) // as if it had been paused until its lease ended
	next, _ := locks.Mutex("rows").Acquire(ctx)

	fmt.Println(rows.write(next.Token()))
	fmt.Println(rows.write(late.Token()))
	// Output:
	// <nil>
	// refused: token of the late writer is older than one already seen
}

// An observer receives each event as it happens. For metrics, count the events by
// kind and add up their times; for traces, begin and end spans with the caller's
// context.
func ExampleOptions_observer() {
	var waited time.Duration
	observe := func(ctx context.Context, e leasehold.Event) {
		switch e.Kind {
		case leasehold.Acquired, leasehold.Handed:
			waited += e.Waited
		}
		fmt.Println(e.Kind, e.Name, errors.Is(e.Err, leasehold.ErrBusy))
	}
	locks := leasehold.New(memstore.New(nil), &leasehold.Options{Observer: observe})

	ctx := context.Background()
	lease, _ := locks.Mutex("stock").Acquire(ctx)
	locks.Mutex("stock").Try(ctx)
	lease.Release(ctx)
	fmt.Println(waited < time.Minute)
	// Output:
	// acquired stock false
	// failed stock true
	// released stock false
	// true
}
