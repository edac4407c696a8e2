package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// followEvery is the pause between two questions to the sentinels whether the
	// master is still the one that we are connected to. It adds to the time in which
	// they notice a failure, which is seconds.
	followEvery = time.Second
	// othersMoment is how long the other sentinels are waited for when one has said
	// where the master is, and somebody waits for a connection: one of them may be
	// dead, and one behind the others.
	othersMoment = 100 * time.Millisecond
)

// What a connection that was replaced ends with. The first two are no refusals: waiting
// mends them.
var (
	errNotMaster = errors.New("it is not the master that the sentinels say it is: they may not know yet")
	errDemoted   = errors.New("it is not the master any more: the sentinels are asked where that is")
	errMoved     = errors.New("the sentinels have another master now")
)

// follow leaves a master that was replaced. It may not know that it was: cut off from
// the sentinels, but not from us, it would go on granting locks that the new one grants
// to others.
//
// Each sentinel is asked each second, over a connection that is kept. To listen to
// what they announce (+switch-master) would be quieter; but what was announced before
// we listened, or on a connection that died without a word, or by another sentinel while
// the one that we listen to is cut off, would be missed for good. Who asks knows within
// a second or two in all these cases.
func (n *node) follow() {
	p := n.newPanel()
	defer p.close()
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
			continue // who connects asks as well
		}
		// To go back to what is older all have to say so: right after a failover most of
		// them may not know of it yet.
		masters, err := n.s.sentinels.masters(n.ctx, p, followEvery, len(p.lines))
		if err != nil || slices.Contains(masters, w.host) {
			continue // as long as the sentinels are away nobody is promoted by them
		}
		n.log.Info("the sentinels have another master", "was", w.host, "is", masters[0])
		w.abandon(errMoved)
	}
}

// whereabouts is where the node's server may be, the likeliest first.
func (n *node) whereabouts(ctx context.Context) ([]string, error) {
	if n.s.sentinels == nil {
		return []string{n.addr.host}, nil
	}
	p := n.newPanel()
	defer p.close()
	masters, err := n.s.sentinels.masters(ctx, p, othersMoment, len(p.lines)/2+1)
	if err == nil {
		n.s.sentinels.lookedAt(masters[0])
	}
	return masters, err
}

// reachMaster is reach where sentinels know which server is meant.
func (n *node) reachMaster() (*wire, error) {
	ctx, cancel := context.WithTimeout(n.ctx, n.s.o.ConnectTimeout)
	defer cancel()
	hosts, err := n.whereabouts(ctx)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		n.s.sentinels.lookedAt(host)
		var w *wire
		if w, err = n.open(ctx, host, n.greet); !errors.Is(err, errNotMaster) {
			return w, err
		}
	}
	return nil, err
}

// isMaster makes sure that the sentinels are right, after the server was identified.
// One whose user may not read INFO is asked for its role alone, and believed if the
// user may not read that either: a replica will refuse to write.
func (n *node) isMaster(w *wire) error {
	if n.s.sentinels == nil {
		return nil
	}
	n.mu.Lock()
	role := n.server.role
	n.mu.Unlock()
	if role == "" {
		said, err := w.exchange([]*command{newCommand("ROLE")})
		if err != nil {
			return err
		}
		if v := said[0]; len(v.list) > 0 {
			role = string(v.list[0].text)
		}
	}
	if role != "" && role != "master" {
		return fmt.Errorf("%w (role %s)", errNotMaster, role)
	}
	return nil
}

// isDemoted says whether a reply means that the server was made a replica since we
// connected to it.
func (n *node) isDemoted(v value) bool {
	return n.s.sentinels != nil && v.kind == '-' &&
		(strings.Contains(string(v.text), "READONLY") || v.isError("MASTERDOWN"))
}

// demoted takes in a reply of that kind, and returns why the connection ends. What
// was asked is as good as not sent: it did nothing. A release is sent to the new
// master; see retained.go.
func (w *wire) demoted() error {
	n := w.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.broken == nil {
		if c, asked := w.flight.pop(); asked {
			w.again.push(c)
		}
		w.giveUp(errDemoted)
	}
	return errDemoted
}
