// Package locks has every implementation that is measured, each in a file of its own,
// used as its documentation says and with its default settings.
package locks

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/bench/floor"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/store"
)

// TTL is the TTL of all locks, so that costs which depend on it are the same for all.
const TTL = 30 * time.Second

// Engine is the kind of server a lock needs.
type Engine string

// The engines.
const (
	Redis      Engine = "redis"
	Etcd       Engine = "etcd"
	ZooKeeper  Engine = "zookeeper"
	PostgreSQL Engine = "postgresql"
	File       Engine = "file" // no server, but a file that processes of one machine share
)

// Role is how an implementation takes part in comparisons.
type Role string

// The roles.
const (
	Ours  Role = "ours"
	Peer  Role = "peer"
	Floor Role = "floor" // the same commands, and nothing else
)

// Kind is one implementation with its settings.
type Kind struct {
	Name   string // for flags and files
	Label  string // shown to the reader
	Role   Role
	Engine Engine
	Nodes  int    // servers it uses
	Module string // whose version counts; empty for our own
	// Sends has the commands that its clients send although scripts may call them too.
	// All other executions of such commands come from scripts.
	Sends []string
	// Uncounted has the commands that its clients send rarely and its scripts call
	// often. Servers report only the sum, so those of clients are not counted.
	Uncounted []string
	Barges    bool // it is notified that the lock is free, and is not handed it
	// Limit is how many can hold one lock at once; 0 is one.
	Limit int
	Open  func(ctx context.Context, addrs []string) (Client, error)
	// Benchmark is the benchmark of Leasehold that measures this kind, if it has no Open.
	Benchmark string
}

// Shares reports whether several can hold one lock at once.
func (k Kind) Shares() bool { return k.Limit != 0 }

// Counted reports whether the commands that its clients send are counted.
func (k Kind) Counted() bool { return k.Engine == Redis || k.Engine == Etcd || k.Engine == ZooKeeper }

// Client is the client that one process uses for all its locks.
type Client interface {
	// Pair returns the lock of that name, for one goroutine.
	Pair(name string) load.Pair
	Close()
}

// All has the implementations, in the order in which they are shown.
var All = []Kind{
	leasehold(5), messagesOf(5), floorOf(5, floor.Lists), floorOf(5, floor.Counts), floorOf(5, floor.Locks),
	redsyncRueidis(5, false), redsyncRueidis(5, true), redsyncGoredis(5, false), redsyncGoredis(5, true),
	leasehold(1), reading(), permit(), leaseholdThroughRueidis, messagesOf(1), floorOf(1, floor.Lists), floorOf(1, floor.Counts), floorOf(1, floor.Locks),
	redsyncRueidis(1, false), redsyncGoredis(1, false), redislock,
	rueidislockOf(1, false), rueidislockOf(1, true), rueidislockOf(2, false), rueidislockOf(2, true),
	inEtcd.alone(), etcdMutex, inZooKeeper.alone(), zookeeperLock, zookeeperFloor,
	postgresqlIn(store.CrashSafe).alone(), postgresqlFloor(true), postgresqlIn(store.Efficiency).alone(), postgresqlFloor(false), advisory,
}

// Named returns the kind of that name.
func Named(name string) (Kind, bool) {
	for _, k := range All {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// client is a Client made of two functions.
type client struct {
	pair  func(name string) load.Pair
	close func()
}

func (c client) Pair(name string) load.Pair { return c.pair(name) }
func (c client) Close()                     { c.close() }

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return string(rune('0'+n)) + " nodes"
}
