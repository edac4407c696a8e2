package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// idle judges that no client waits for a lock that is free: while a waiter reaches a
// majority of nodes, no holder lives, and no dead holder's lease is left, the lock is
// granted within four node timeouts and a quarter of a second.
//
// It is called before every event, since only events change its input.
func (j *judge) idle() {
	if j.w.switches.Patient || j.w.script.Roll { // a majority of what, depends on whom you ask
		return
	}
	now := j.w.now()
	for _, c := range j.w.clients {
		for _, l := range c.links {
			if !l.usable() {
				l.clearSince = now
			}
		}
	}
	for lock := range j.locks {
		r := &j.locks[lock]
		if r.waited != "" && now-r.freeSince > j.bound() && !j.w.gaveUp {
			j.wrong(Idle, "lock %d can be had since %v, and %s waits for it: %s", lock+1, r.freeSince, r.waited, j.describe(lock))
			return
		}
		who := j.waitsInVain(lock)
		if who == "" || r.waited == "" || r.grants != r.grantsSeen {
			r.freeSince, r.grantsSeen = now, r.grants
		}
		r.waited = who
	}
}

// slept begins the judgement anew: no client could act while all machines slept.
func (j *judge) slept() {
	for lock := range j.locks {
		j.locks[lock].waited = ""
	}
}

// bound is how long a lock may stay free while a waiter could be granted it.
func (j *judge) bound() time.Duration {
	return 4*j.w.script.nodeTimeout(j.w.script.longest()) + 250*time.Millisecond
}

// waitsInVain names a waiter of a lock that could be granted, if there is one.
func (j *judge) waitsInVain(lock int) string {
	r := &j.locks[lock]
	j.kept = slices.DeleteFunc(j.kept, func(c *claim) bool { return c.k.c.dead || c.giving && c.over })
	taken := int64(0) // also where the lease was lost: what it was for may not be done yet
	for _, c := range j.kept {
		if c.lock == lock {
			taken += c.weight
		}
	}
	if taken+j.mostWanted(lock) > j.w.script.kind(lock).Limit || j.w.now() < r.leastUntil {
		return ""
	}
	for _, c := range j.w.clients {
		if !j.settled(c) {
			continue
		}
		for _, k := range c.workers {
			if k.wants == lock && j.available(c, lock) >= moreThanHalf(len(j.w.nodes)) {
				return fmt.Sprintf("c%d.w%d", c.index+1, k.index)
			}
		}
	}
	return ""
}

// mostWanted is the largest weight of those that wait for a lock: the others may have to
// wait behind it. It counts dead processes, since their places stay for a while.
func (j *judge) mostWanted(lock int) int64 {
	most := int64(1)
	for _, c := range j.w.clients {
		for _, k := range c.workers {
			if k.wants == lock {
				most = max(most, k.wantsWeight)
			}
		}
	}
	return most
}

// settled says whether a client has run for long enough to do what was due while it could
// not.
func (j *judge) settled(c *client) bool {
	return c.running() && j.w.now() > c.goneOn && j.w.now() > c.wokeAt+250*time.Millisecond
}

// available is how many nodes could grant a lock to a client.
func (j *judge) available(c *client, lock int) (nodes int) {
	for _, n := range j.w.nodes {
		if j.reachable(c, n) && n.shut() == 0 && !n.unseen && j.w.now() >= n.doubted && j.releasable(n, lock) {
			nodes++
		}
	}
	return nodes
}

// mostPause is how long a client pauses at most before it tries to connect again, once it
// has given up an attempt that nothing answered.
const mostPause = time.Second + 2*time.Millisecond

// reachable says whether a client can talk to a node: no fault prevents it, and the client
// is connected, or has had the time to connect.
func (j *judge) reachable(c *client, n *node) bool {
	l := c.links[n.index]
	return l.usable() && (l.connected() || j.w.now() > l.clearSince+redisstore.DefaultConnectTimeout+mostPause+2*j.w.script.nodeTimeout(j.w.script.longest()))
}

// releasable says whether a node has room for a lock's waiters, or all owners that it has are
// there to make room.
func (j *judge) releasable(n *node, lock int) bool {
	all := n.held(lock)
	kind := j.w.script.kind(lock)
	if (len(all) == 0 || !kind.IsMutex()) && j.offeredInVain(n, lock) {
		return false
	}
	left := kind.Limit
	for _, h := range all {
		left -= h.weight
		o := j.w.owner(h.owner)
		if o.client < 0 || o.revived || o.left {
			return false
		}
		if by := j.w.clients[o.client]; !j.settled(by) || !j.reachable(by, n) {
			return false
		}
	}
	return kind.IsMutex() || n.mostWanted(lock) <= left
}

// describe lists the nodes that each owner of a lock has.
func (j *judge) describe(lock int) string {
	var all []string
	for _, n := range j.w.nodes {
		held := n.held(lock)
		if len(held) == 0 {
			all = append(all, fmt.Sprintf("n%d nobody", n.index+1))
		}
		for _, h := range held {
			all = append(all, fmt.Sprintf("n%d o%d (c%d) for %v", n.index+1, h.owner, j.w.owner(h.owner).client+1, h.left.Round(time.Millisecond)))
		}
	}
	return strings.Join(all, ", ")
}
