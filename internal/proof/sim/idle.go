package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// idleness judges how long a lock stays free that somebody waits for.
type idleness struct {
	*findings
	w       *world
	holders *holders
	waits   []wait // for each lock
}

// wait is the waiter that could be granted a lock, since when, and the number of grants
// until then.
type wait struct {
	waiter    string
	freeSince time.Duration
	grants    int
}

// idle judges that no client waits for a lock that is free: while a waiter reaches a
// majority of nodes, no holder lives, and no dead holder's lease is left, the lock is
// granted within four node timeouts and a quarter of a second.
//
// It is called before every event, since only events change its input.
func (i *idleness) idle() {
	if i.w.switches.Patient || i.w.script.Roll { // a majority of what, depends on whom you ask
		return
	}
	now := i.w.now()
	for _, c := range i.w.clients {
		for _, l := range c.links {
			if !l.usable() {
				l.clearSince = now
			}
		}
	}
	for lock := range i.holders.locks {
		r := &i.waits[lock]
		if r.waiter != "" && now-r.freeSince > i.bound() && !i.gaveUp {
			i.wrong(Idle, "lock %d is available since %v, and %s waits for it: %s", lock+1, r.freeSince, r.waiter, i.describe(lock))
			return
		}
		waiter, grants := i.waitsInVain(lock), i.holders.locks[lock].grants
		if waiter == "" || r.waiter == "" || grants != r.grants {
			r.freeSince, r.grants = now, grants
		}
		r.waiter = waiter
	}
}

// slept begins the judgement anew: no client could act while all machines slept.
func (i *idleness) slept() {
	for lock := range i.waits {
		i.waits[lock].waiter = ""
	}
}

// bound is how long a lock may stay free while a waiter could be granted it.
func (i *idleness) bound() time.Duration {
	return 4*i.w.script.nodeTimeout(i.w.script.longest()) + 250*time.Millisecond
}

// waitsInVain names a waiter of a lock that could be granted, if there is one.
func (i *idleness) waitsInVain(lock int) string {
	r := &i.holders.locks[lock]
	i.holders.kept = slices.DeleteFunc(i.holders.kept, func(c *claim) bool { return c.k.c.dead || c.giving && c.over })
	taken := int64(0) // also where the lease was lost: what it was for may not be done yet
	for _, c := range i.holders.kept {
		if c.lock == lock {
			taken += c.weight
		}
	}
	if taken+i.mostWanted(lock) > i.w.script.kind(lock).Limit || i.w.now() < r.leastUntil || i.outranked(lock) {
		return ""
	}
	for _, c := range i.w.clients {
		if !i.settled(c) {
			continue
		}
		for _, k := range c.workers {
			if k.wants == lock && i.available(c, lock) >= moreThanHalf(len(i.w.nodes)) {
				return fmt.Sprintf("c%d.w%d", c.index+1, k.index)
			}
		}
	}
	return ""
}

// mostWanted is the largest weight of those that wait for a lock: the others may have to
// wait behind it. It counts dead processes, since their places stay for a while.
func (i *idleness) mostWanted(lock int) int64 {
	most := int64(1)
	for _, c := range i.w.clients {
		for _, k := range c.workers {
			if k.wants == lock {
				most = max(most, k.wantsWeight)
			}
		}
	}
	return most
}

// outranked reports whether two waiters of one client, which cannot have the lock, may hand it
// to each other ahead of the rest: their client's time of day is behind that of another one.
func (i *idleness) outranked(lock int) bool {
	return slices.ContainsFunc(i.w.clients, func(c *client) bool {
		waiters := 0
		for _, k := range c.workers {
			if k.wants == lock {
				waiters++
			}
		}
		return waiters > 1 && i.available(c, lock) < moreThanHalf(len(i.w.nodes)) &&
			slices.ContainsFunc(i.w.clients, func(d *client) bool { return d.wrong.Load() > c.wrong.Load() })
	})
}

// settled reports whether a client has run for long enough to do what was due while it could
// not.
func (i *idleness) settled(c *client) bool {
	return c.running() && i.w.now() > c.goneOn && i.w.now() > c.wokeAt+250*time.Millisecond
}

// available is how many nodes could grant a lock to a client.
func (i *idleness) available(c *client, lock int) (nodes int) {
	for _, n := range i.w.nodes {
		if i.reachable(c, n) && n.quarantineLeft() == 0 && !n.unseen && i.w.now() >= n.doubted && i.releasable(n, lock) {
			nodes++
		}
	}
	return nodes
}

// mostPause is how long a client pauses at most before it tries to connect again, once it
// has given up an attempt that nothing answered.
const mostPause = time.Second + 2*time.Millisecond

// reachable reports whether a client can talk to a node: no fault prevents it, and the client
// is connected, or has had the time to connect.
func (i *idleness) reachable(c *client, n *node) bool {
	l := c.links[n.index]
	return l.usable() && (l.connected() || i.w.now() > l.clearSince+redisstore.DefaultConnectTimeout+mostPause+2*i.w.script.nodeTimeout(i.w.script.longest()))
}

// releasable reports whether a node has room for a lock's waiters, or all owners that it has are
// there to make room.
func (i *idleness) releasable(n *node, lock int) bool {
	all := heldAt(n, lock)
	kind := i.w.script.kind(lock)
	if (len(all) == 0 || !kind.IsMutex()) && i.offeredInVain(n, lock) {
		return false
	}
	left := kind.Limit
	for _, h := range all {
		left -= h.weight
		o := i.w.owner(h.owner)
		if o.client < 0 || o.revived || o.left {
			return false
		}
		if by := i.w.clients[o.client]; !i.settled(by) || !i.reachable(by, n) {
			return false
		}
	}
	return kind.IsMutex() || mostWantedAt(n, lock) <= left
}

// offeredInVain reports whether a lock is offered to a waiter that cannot take it.
func (i *idleness) offeredInVain(n *node, lock int) bool {
	o := n.offered[lock]
	if o.until <= i.w.now() {
		return false
	}
	to := i.w.clients[i.w.owner(o.owner).client]
	return !i.settled(to) || !i.reachable(to, n)
}

// mostWantedAt is the largest weight of those that have a place in a lock's queue at a node:
// nobody may pass them.
func mostWantedAt(n *node, lock int) (most int64) {
	for _, key := range n.server.Keys() {
		if l, _, ok := placeOf(key); ok && l == lock {
			text, _, _ := n.server.Value(key)
			most = max(most, wishOf(text))
		}
	}
	return most
}

// describe lists the nodes that each owner of a lock has.
func (i *idleness) describe(lock int) string {
	var all []string
	for _, n := range i.w.nodes {
		held := heldAt(n, lock)
		if len(held) == 0 {
			all = append(all, fmt.Sprintf("n%d nobody", n.index+1))
		}
		for _, h := range held {
			all = append(all, fmt.Sprintf("n%d o%d (c%d) for %v", n.index+1, h.owner, i.w.owner(h.owner).client+1, h.left.Round(time.Millisecond)))
		}
	}
	return strings.Join(all, ", ")
}
