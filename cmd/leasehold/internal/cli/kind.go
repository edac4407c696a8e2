package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// kindFlags say what kind of lock is acquired, and which others together with it.
type kindFlags struct {
	shared, exclusive bool
	permits, weight   int
	also              []string
}

func (k *kindFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&k.shared, "shared", false, "acquire NAME as one of many readers of a read-write lock")
	f.BoolVar(&k.exclusive, "exclusive", false, "acquire NAME as the only writer of a read-write lock")
	f.IntVar(&k.permits, "permits", 0, "acquire one of `N` permits of the semaphore NAME")
	f.IntVar(&k.weight, "weight", 1, "acquire `W` permits instead of one")
}

// addAlso adds the flag for several locks.
func (k *kindFlags) addAlso(p *program, c *cobra.Command) {
	c.Flags().StringArrayVar(&k.also, "also", nil, "acquire the lock `NAME` as well, all or none; may be repeated")
	err := c.RegisterFlagCompletionFunc("also", func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return p.completeName(c, toComplete)
	})
	if err != nil {
		panic(err) // there is no such flag
	}
}

// check returns what is wrong with the flags.
func (k *kindFlags) check(c *cobra.Command) error {
	set := c.Flags().Changed
	switch {
	case k.shared && k.exclusive:
		return errors.New("--shared and --exclusive exclude each other")
	case set("permits") && (k.shared || k.exclusive):
		return errors.New("--permits is about a semaphore, --shared and --exclusive about a read-write lock: a name is used as one kind of lock")
	case set("permits") && k.permits < 1:
		return fmt.Errorf("--permits %d: a semaphore needs at least one permit", k.permits)
	case set("weight") && !set("permits"):
		return errors.New("--weight goes with --permits")
	case set("weight") && (k.weight < 1 || k.weight > k.permits):
		return fmt.Errorf("--weight %d: a lease can have at least one permit, and here at most %d", k.weight, k.permits)
	}
	for _, name := range k.also {
		if err := store.CheckName(name); err != nil {
			return fmt.Errorf("--also: %w", err)
		}
	}
	return nil
}

// lock returns what to acquire.
func (k *kindFlags) lock(c *leasehold.Client, name string, o leasehold.LockOptions) acquirer {
	first := c.Mutex(name)
	switch {
	case k.shared:
		first = c.RW(name).Read()
	case k.exclusive:
		first = c.RW(name).Write()
	case k.permits > 1:
		first = c.Semaphore(name, k.permits).With(leasehold.LockOptions{Weight: k.weight})
	}
	if len(k.also) == 0 {
		return one{first.With(o)}
	}
	locks := []*leasehold.Lock{first}
	for _, name := range k.also {
		locks = append(locks, c.Mutex(name))
	}
	return several{c.All(locks...).With(o), name}
}

// acquirer acquires one lock, or several together.
type acquirer interface {
	acquire(ctx context.Context) (lease, error)
	try(ctx context.Context) (lease, error)
}

// lease is one lease, or those of several locks that were acquired together.
type lease interface {
	Done() <-chan struct{}
	Err() error
	Deadline() time.Time
	Release(ctx context.Context) error
	WaiveMinHold()
	// each returns the leases, that of the command's NAME first.
	each() []*leasehold.Lease
}

// namesOf names the locks of l for people.
func namesOf(l lease) string {
	var names []string
	for _, l := range l.each() {
		names = append(names, fmt.Sprintf("%q", l.Name()))
	}
	if len(names) == 1 {
		return "lock " + names[0]
	}
	return "locks " + strings.Join(names, ", ")
}

type one struct{ lock *leasehold.Lock }

func (o one) acquire(ctx context.Context) (lease, error) { return single(o.lock.Acquire(ctx)) }
func (o one) try(ctx context.Context) (lease, error)     { return single(o.lock.Try(ctx)) }

type singleLease struct{ *leasehold.Lease }

func single(l *leasehold.Lease, err error) (lease, error) {
	if err != nil {
		return nil, err
	}
	return singleLease{l}, nil
}

func (l singleLease) each() []*leasehold.Lease { return []*leasehold.Lease{l.Lease} }

type several struct {
	locks *leasehold.All
	first string
}

func (s several) acquire(ctx context.Context) (lease, error) {
	return s.leases(s.locks.Acquire(ctx))
}

func (s several) try(ctx context.Context) (lease, error) { return s.leases(s.locks.Try(ctx)) }

func (s several) leases(ls *leasehold.Leases, err error) (lease, error) {
	if err != nil {
		return nil, err
	}
	all := []*leasehold.Lease{ls.Of(s.first)}
	for _, l := range ls.Each() {
		if l.Name() != s.first {
			all = append(all, l)
		}
	}
	return severalLeases{ls, all}, nil
}

type severalLeases struct {
	*leasehold.Leases
	all []*leasehold.Lease
}

func (l severalLeases) each() []*leasehold.Lease { return l.all }
func (l severalLeases) Done() <-chan struct{}    { return l.Context().Done() }

func (l severalLeases) WaiveMinHold() {
	for _, one := range l.all {
		one.WaiveMinHold()
	}
}
