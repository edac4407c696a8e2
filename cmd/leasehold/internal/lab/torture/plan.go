// Package torture hammers the locks of a store with several processes, stops
// and kills some of them meanwhile, and has the history of it all checked.
//
// The processes are runs of the program that calls Run: it starts itself again,
// in a way in which it calls Work. Run disturbs these processes only;
// the owner of the servers may disturb those, by Config.Disturb.
package torture

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// plan is what a worker process is to do. It goes to it by its standard input:
// arguments and environment can be seen by others, and a store's URL may have a
// password in it.
type plan struct {
	Proc       int           `json:"proc"` // from 1
	Life       int           `json:"life"` // from 1
	Seed       uint64        `json:"seed"`
	Goroutines int           `json:"goroutines"`
	Crowd      int           `json:"crowd"`
	Locks      []string      `json:"locks"`
	Kinds      []store.Kind  `json:"kinds"` // of the locks
	TTL        time.Duration `json:"ttl"`
	Store      []string      `json:"store"`
	History    string        `json:"history"`
	Resource   string        `json:"resource"`
	Guard      string        `json:"guard"` // URL of the guarded resource
}

// Limits of a Config.
const (
	MaxProcs = 64
	MaxLocks = 64
	MinTTL   = 200 * time.Millisecond
	MaxTTL   = time.Minute
	MinFor   = time.Second
	MaxFor   = 2 * time.Hour // all of its history is kept in memory
)

// Goroutines of each process, if the Config says nothing else.
const Goroutines = 3

// calm is how long it may take until every lock is granted again after the last
// fault: what a dead holder left has to expire, and so has what it had sent and
// was held up; waiters may be in a pause, and the machine may be busy.
func calm(ttl time.Duration) time.Duration { return 5*ttl + 10*time.Second }

// grace is how long after a fault a server is not expected to be of use yet: clients
// pause for a second before they try to connect again.
const grace = 2 * time.Second

// Check says what is wrong with c for a store of these abilities.
func (c Config) Check(caps store.Caps) error {
	switch {
	case c.Procs < 2 || c.Procs > MaxProcs:
		return fmt.Errorf("the number of processes is %d: it has to be 2 to %d, because one has nobody to compete with", c.Procs, MaxProcs)
	case len(c.Locks) < 1 || len(c.Locks) > MaxLocks:
		return fmt.Errorf("the number of locks is %d: it has to be 1 to %d", len(c.Locks), MaxLocks)
	case c.For < MinFor || c.For > MaxFor:
		return fmt.Errorf("the duration is %v: it has to be %v to %v", c.For, MinFor, MaxFor)
	case c.TTL < MinTTL || c.TTL > MaxTTL:
		return fmt.Errorf("the TTL is %v: it has to be %v to %v", c.TTL, MinTTL, MaxTTL)
	case caps.MaxTTL > 0 && c.TTL > caps.MaxTTL:
		return fmt.Errorf("the TTL is %v, and the store's maximum is %v: ask for less", c.TTL, caps.MaxTTL)
	case len(c.Kinds) != 0 && len(c.Kinds) != len(c.Locks):
		return fmt.Errorf("there are %d locks and %d kinds: each lock has one", len(c.Locks), len(c.Kinds))
	case caps.Reach == "process":
		return fmt.Errorf("the locks of this store (%s) are for one process only, and this test has several", caps.Engine)
	}
	for i, kind := range c.Kinds {
		if err := (store.Lease{Name: c.Locks[i], Kind: kind}).CheckKind(caps); err != nil {
			return err
		}
	}
	return nil
}

// Names are the names of n locks that nobody else uses.
func Names(n int) []string {
	prefix := "leasehold-torture/" + rand.Text()[:8] + "/"
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i+1)
	}
	return names
}

// Kinds are the kinds of n locks: a mutex, a read-write lock, a small and a larger
// semaphore, and again.
func Kinds(n int) []store.Kind {
	all := []store.Kind{{}, store.ReadWrite, store.Semaphore(3), store.Semaphore(8)}
	kinds := make([]store.Kind, n)
	for i := range kinds {
		kinds[i] = all[i%len(all)]
	}
	return kinds
}
