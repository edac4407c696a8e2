// Package operator gives package redisadmin access to the servers of a store, through the
// nodes that locks use: what a node finds out when it connects, it finds out once.
//
// It knows no server. Package redisstore sets Open, and redisadmin, which imports
// redisstore, calls it.
package operator

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Servers are the independent servers of a store. They are numbered from 0.
type Servers interface {
	// Addrs returns the addresses of the servers.
	Addrs() []string
	// Membership returns the memberships that the store is configured with.
	Membership() membership.List
	// Connect waits until a quorum of different servers is up.
	Connect(ctx context.Context) error
	// Join has servers that belong to nobody join the others, as a client that wants locks does.
	Join(ctx context.Context) error
	// Ask sends a command to a server and waits for the answer. It connects if necessary.
	Ask(ctx context.Context, server int, c *script.Command) script.Reply
	// Identity returns what a server reported about itself when the store connected.
	Identity(server int) membership.Identity
	// Held returns the locks that are held, or may be, with those of other clients that have
	// a token counter.
	Held(ctx context.Context) ([]store.State, error)
	// HeldAt returns a lock that is held on one server, whatever the others say, and its
	// holder. The name is empty if there is none.
	HeldAt(ctx context.Context, server int) (name string, holder store.Holder, err error)
	// Quarantine is how long a server that may have forgotten leases grants nothing.
	Quarantine() time.Duration
	// Close closes the store.
	Close() error
}

// Open returns the servers that url names, before anything is sent to them. The argument
// declares is set if quarantines are no news, because they are about to be ended.
var Open func(url string, c config.Config, declares bool) (Servers, error)
