package route

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/sentinel"
)

// Sentinels is the topology of a master that sentinels watch, which is the only node.
type Sentinels struct {
	node.Independent
	Group *sentinel.Group // finds the address of the master
}

// Name implements node.Topology, as the methods below do.
func (t Sentinels) Name(*node.Node) string { return t.Group.Name() }

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

// Follow notices when the connected master has been replaced. The old master may not
// know: if it is cut off from the sentinels but not from this client, it goes on granting
// locks that the new master grants to others.
//
// It asks every sentinel once a second, over connections that it keeps. Subscribing
// to +switch-master would take fewer messages. But a client would then miss an
// announcement made before it subscribed, on a connection that died silently, or by
// another sentinel while its own is cut off. By asking, it notices all of these within a
// second or two.
func (t Sentinels) Follow(n *node.Node) {
	p := t.Group.NewPool(&n.Shared.Config)
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
		masters, err := t.Group.Masters(n.Context(), p, followEvery, p.Size())
		if err != nil || slices.Contains(masters, w.Host) {
			continue // without sentinels there is no promotion
		}
		n.Log.Info("the sentinels now name another master", "was", w.Host, "is", masters[0])
		w.Abandon(errMoved)
	}
}

func (t Sentinels) Reach(n *node.Node) (*conn.Pipe[node.Call], error) {
	ctx, cancel := context.WithTimeout(n.Context(), n.Shared.Config.ConnectTimeout)
	defer cancel()
	hosts, err := t.Group.Find(ctx, &n.Shared.Config)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		t.Group.FoundAt(host)
		var w *conn.Pipe[node.Call]
		if w, err = node.Connect(ctx, n, host); !errors.Is(err, errNotMaster) {
			return w, err
		}
	}
	return nil, err
}

// Fit also checks that the server is a master. If the user may not read INFO, it asks for the role
// alone. If the user may not read that either, it trusts the sentinels: a replica will refuse writes.
func (t Sentinels) Fit(s *node.Session, id membership.Identity) error {
	role := id.Role
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
	if id.Role == "" {
		return nil
	}
	return t.Independent.Fit(s, id)
}

// Demoted reports whether a reply means that the server has become a replica since the
// connection was made.
func (Sentinels) Demoted(v resp.Value) bool {
	c := v.Code()
	return c == resp.ReadOnly || c == resp.MasterDown
}
