package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

const (
	// followEvery is the interval at which a connected node asks the sentinels whether
	// the master has changed. It adds to the time in which they notice a failure, which
	// is some seconds.
	followEvery = time.Second
	// othersMoment is how long the other sentinels may take to answer after the first has
	// named a master, while calls wait for a connection. One of the others may be dead;
	// one may know a newer master.
	othersMoment = 100 * time.Millisecond
)

// Reasons for replacing a connection. The first two are not refusals: they end by
// waiting.
var (
	errNotMaster = errors.New("it is not the master, but the sentinels name it: they may not have noticed a failover yet")
	errDemoted   = errors.New("it is not the master any more; asking the sentinels for the new one")
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
func (n *node) follow() {
	p := n.s.sentinels.NewPool(&n.s.o)
	defer p.Close()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-tick.C:
		}
		n.mu.Lock()
		w := n.wire
		n.mu.Unlock()
		if w == nil {
			continue // connecting asks as well
		}
		// To go back to an older configuration, all sentinels must report it: right after
		// a failover most of them may not know the new one yet.
		masters, err := n.s.sentinels.Masters(n.ctx, p, followEvery, p.Size())
		if err != nil || slices.Contains(masters, w.Host) {
			continue // without sentinels there is no promotion
		}
		n.log.Info("the sentinels now name another master", "was", w.Host, "is", masters[0])
		w.abandon(errMoved)
	}
}

// masterAddrs returns the addresses where the node's server may be, the likeliest first.
func (n *node) masterAddrs(ctx context.Context) ([]string, error) {
	if n.s.sentinels == nil {
		return []string{n.addr.Host}, nil
	}
	p := n.s.sentinels.NewPool(&n.s.o)
	defer p.Close()
	masters, err := n.s.sentinels.Masters(ctx, p, othersMoment, p.Size()/2+1)
	if err == nil {
		n.s.sentinels.FoundAt(masters[0])
	}
	return masters, err
}

// reachMaster is reach for a node that sentinels watch.
func (n *node) reachMaster() (*wire, error) {
	ctx, cancel := context.WithTimeout(n.ctx, n.s.o.ConnectTimeout)
	defer cancel()
	hosts, err := n.masterAddrs(ctx)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		n.s.sentinels.FoundAt(host)
		var w *wire
		if w, err = n.open(ctx, host, n.greet); !errors.Is(err, errNotMaster) {
			return w, err
		}
	}
	return nil, err
}

// isMaster checks that the server, which has been identified, is a master. If the user
// may not read INFO, it asks for the role alone. If the user may not read that either, it
// trusts the sentinels: a replica will refuse writes.
func (n *node) isMaster(w *wire) error {
	if n.s.sentinels == nil {
		return nil
	}
	n.mu.Lock()
	role := n.server.Role
	n.mu.Unlock()
	if role == "" {
		said, err := w.Exchange(resp.Command("ROLE"))
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

// isDemoted reports whether a reply means that the server has become a replica since the
// connection was made.
func (n *node) isDemoted(v resp.Value) bool {
	if n.s.sentinels == nil {
		return false
	}
	c := v.Code()
	return c == resp.ReadOnly || c == resp.MasterDown
}

// demoted handles such a reply, and returns why the connection ends. The call that was
// refused counts as not sent. A release is sent to the new master; see retained.go.
func (w *wire) demoted() error {
	n := w.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.broken == nil {
		if c, asked := w.flight.pop(); asked {
			w.again.push(c)
		}
		w.giveUpLocked(errDemoted)
	}
	return errDemoted
}
