package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
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
	completeFlag(c, "also", func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return p.completeName(c, toComplete)
	})
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

// acquire acquires what the flags say. It waits unless try is set.
func (k *kindFlags) acquire(ctx context.Context, c *leasehold.Client, name string, o leasehold.LockOptions, try bool) (lease, error) {
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
		acquire := first.With(o).Acquire
		if try {
			acquire = first.With(o).Try
		}
		l, err := acquire(ctx)
		return single(l), err
	}
	locks := []*leasehold.Lock{first}
	for _, name := range k.also {
		locks = append(locks, c.Mutex(name))
	}
	together := c.All(locks...).With(o)
	acquire := together.Acquire
	if try {
		acquire = together.Try
	}
	ls, err := acquire(ctx)
	if err != nil {
		return lease{}, err
	}
	all := []*leasehold.Lease{ls.Of(name)}
	for _, l := range ls.Each() {
		if l.Name() != name {
			all = append(all, l)
		}
	}
	return lease{several{ls}, all}, nil
}

// lease is one lease, or those of several locks that were acquired together.
type lease struct {
	leases
	each []*leasehold.Lease // that of the command's NAME first
}

// leases are a *leasehold.Lease, or several.
type leases interface {
	runner.Lease
	Release(ctx context.Context) error
}

type several struct{ *leasehold.Leases }

func (s several) Done() <-chan struct{} { return s.Context().Done() }

func single(l *leasehold.Lease) lease { return lease{l, []*leasehold.Lease{l}} }

func (l lease) waiveMinHold() {
	for _, one := range l.each {
		one.WaiveMinHold()
	}
}

// names names the locks for people.
func (l lease) names() string {
	var names []string
	for _, one := range l.each {
		names = append(names, fmt.Sprintf("%q", one.Name()))
	}
	if len(names) == 1 {
		return "lock " + names[0]
	}
	return "locks " + strings.Join(names, ", ")
}
