package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/sentinel"
)

// watched is the topology of a master that sentinels watch, which is the only node.
type watched struct {
	independent
	group *sentinel.Group // finds the address of the master
}

func (watched) ready(_ *fleet, r store.Lease) error {
	return fmt.Errorf("%w: lock %q requires %v, but servers watched by sentinels guarantee %v at most", store.ErrUnsupported, r.Name, r.Require, store.Efficiency)
}

func (t watched) name(*node) string { return t.group.Name() }

func (t watched) start(n *node) { n.Go(func() { t.follow(n) }) }

// fit says nothing about a replica: settled does.
func (t watched) fit(n *node, id membership.Identity) error {
	if id.Role != "master" {
		return nil
	}
	return t.independent.fit(n, id)
}

const (
	// followEvery is the interval at which a connected node asks the sentinels whether
	// the master has changed. It adds to the time in which they notice a failure, which
	// is some seconds.
	followEvery = time.Second
)

// Reasons for replacing a connection. The first is no refusal: it ends by waiting.
var (
	errNotMaster = errors.New("it is not the master, but the sentinels name it: they may not have noticed a failover yet")
	errMoved     = errors.New("the sentinels now name another master")
)

// follow notices when the connected master has been replaced. The old master may not
// know: if it is cut off from the sentinels but not from this client, it goes on granting
// locks that the new master grants to others.
//
// follow asks every sentinel once a second, over connections that it keeps. Subscribing
// to +switch-master would take fewer messages. But a client would then miss an
// announcement made before it subscribed, on a connection that died silently, or by
// another sentinel while its own is cut off. By asking, it notices all of these within a
// second or two.
func (t watched) follow(n *node) {
	p := t.group.NewPool(&n.s.o)
	defer p.Close()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.Context().Done():
			return
		case <-tick.C:
		}
		w := n.Pipe()
		if w == nil {
			continue // connecting asks as well
		}
		// To go back to an older configuration, all sentinels must report it: right after
		// a failover most of them may not know the new one yet.
		masters, err := t.group.Masters(n.Context(), p, followEvery, p.Size())
		if err != nil || slices.Contains(masters, w.Host) {
			continue // without sentinels there is no promotion
		}
		n.log.Info("the sentinels now name another master", "was", w.Host, "is", masters[0])
		w.Abandon(errMoved)
	}
}

func (t watched) reach(n *node) (*conn.Pipe[call], error) {
	ctx, cancel := context.WithTimeout(n.Context(), n.s.o.ConnectTimeout)
	defer cancel()
	hosts, err := t.group.Find(ctx, &n.s.o)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		t.group.FoundAt(host)
		var w *conn.Pipe[call]
		if w, err = connect(ctx, n, host); !errors.Is(err, errNotMaster) {
			return w, err
		}
	}
	return nil, err
}

// settled checks that the server, which has been identified, is a master. If the user
// may not read INFO, it asks for the role alone. If the user may not read that either, it
// trusts the sentinels: a replica will refuse writes.
func (watched) settled(s *session) error {
	n := s.n
	n.Mu.Lock()
	role := n.server.Role
	n.Mu.Unlock()
	if role == "" {
		said, err := s.Exchange(resp.Command("ROLE"))
		if err != nil {
			return err
		}
		if v := said[0]; len(v.List) > 0 {
			role = string(v.List[0].Text)
		}
	}
	if role != "" && role != "master" {
		return fmt.Errorf("%w (role %s)", errNotMaster, role)
	}
	return nil
}

// demoted reports whether a reply means that the server has become a replica since the
// connection was made.
func (watched) demoted(v resp.Value) bool {
	c := v.Code()
	return c == resp.ReadOnly || c == resp.MasterDown
}
