package redisadmin

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/operator"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Declared identifies a server that Bootstrap declared empty.
type Declared struct {
	Node  string // the server's address
	RunID string // the server's run ID, which changes at every start
}

// Bootstrap declares that the servers have forgotten no lease: they are new, or no client
// that may have held locks on them is running any more. It ends their quarantine at once.
// The declaration covers only the servers that answer now, and only their current run. If
// it is wrong, a lock can have two holders.
//
// Bootstrap changes nothing and fails unless every node of url answers and reports its
// identity. It also fails with store.ErrBusy if locks are held there, unless force is
// set. A server that was used alone becomes one of several. It blocks for about Options.ConnectTimeout at most. It is safe for concurrent use,
// and calling it twice is harmless.
func Bootstrap(ctx context.Context, url string, o *redisstore.Options, force bool) ([]Declared, error) {
	if err := config.MustBeIndependent("bootstrap", url); err != nil {
		return nil, err
	}
	settings := settingsOf(o)
	s, err := operator.Open(url, settings, true)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.Connect(ctx); err != nil {
		return nil, err
	}
	servers, err := identities(ctx, s)
	if err != nil {
		return nil, err
	}
	held, err := s.Held(ctx)
	if err != nil {
		return nil, err
	}
	if len(held) > 0 && !force {
		holder := held[0].Holder
		if !held[0].Held { // a server does not answer any more
			holder = held[0].Undecided[0].Holder
		}
		others := ""
		if n := len(held) - 1; n > 0 {
			others = fmt.Sprintf(" (and more: %d)", n)
		}
		return nil, fmt.Errorf("%w: %q is held by %s%s: servers in use must not be declared empty", store.ErrBusy, held[0].Name, holder, others)
	}
	if !force && len(servers) > 1 {
		if err := nobodyAlone(ctx, s, servers); err != nil {
			return nil, err
		}
	}
	nodes := make([]store.NodeOutcome, len(servers))
	for i, server := range servers {
		id := s.Identity(i)
		now := time.Time{}
		if clock := s.Ask(ctx, i, script.NewCommand("TIME")); clock.Outcome == store.Granted {
			now, _ = readTime(clock.Value)
		}
		mark := membership.Declared(s.Membership(), id, id.Durable(settings.FsyncAlways) == "always" && !force, now)
		if len(servers) > 1 { // nobody uses it alone any more, or must not
			s.Ask(ctx, i, script.NewCommand("SET", script.AloneKey, "", "PX", "1"))
		}
		r := s.Ask(ctx, i, script.NewCommand("SET", script.MarkKey, mark.String()))
		s.Ask(ctx, i, script.NewCommand("PUBLISH", membership.Channel, "")) // as tell.lua does
		nodes[i] = store.NodeOutcome{Node: server.Node, Outcome: r.Outcome, Err: r.Err}
	}
	if e := (&store.QuorumError{Op: "bootstrap", Need: len(nodes), Nodes: nodes}); e.Count(store.Granted) < e.Need {
		return nil, e
	}
	return servers, nil
}

// nobodyAlone returns an error if a lock is held on a server by a client that uses that server
// alone.
func nobodyAlone(ctx context.Context, s operator.Servers, servers []Declared) error {
	for i, server := range servers {
		user := s.Ask(ctx, i, script.NewCommand("GET", script.AloneKey))
		if user.Outcome != store.Granted || user.Value.Null {
			continue
		}
		name, holder, err := s.HeldAt(ctx, i)
		if err != nil {
			return err
		}
		if name != "" {
			return fmt.Errorf("%w: %q is held by %s on %s, which is in use alone by %q: servers in use must not be declared empty", store.ErrBusy, name, holder, server.Node, user.Value.Text)
		}
	}
	return nil
}

// identities returns the identity of the server at each address.
func identities(ctx context.Context, s operator.Servers) ([]Declared, error) {
	addrs := s.Addrs()
	servers := make([]Declared, len(addrs))
	nodes := make([]store.NodeOutcome, len(addrs))
	for i, addr := range addrs {
		r := s.Ask(ctx, i, script.NewCommand("PING")) // connects if necessary
		nodes[i] = store.NodeOutcome{Node: addr, Outcome: r.Outcome, Err: r.Err}
		servers[i] = Declared{addr, s.Identity(i).RunID}
		if r.Outcome == store.Granted && servers[i].RunID == "" {
			nodes[i].Outcome, nodes[i].Err = store.Refused, membership.ErrUnidentified
		}
	}
	if e := (&store.QuorumError{Op: "bootstrap", Need: len(nodes), Nodes: nodes}); e.Count(store.Granted) < e.Need {
		return nil, e
	}
	return servers, nil
}

// settingsOf returns the settings of a store's options.
func settingsOf(o *redisstore.Options) config.Config {
	if o == nil {
		return config.Config{}
	}
	return config.Config(*o)
}
