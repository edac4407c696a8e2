package redisstore

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// A membership is the set of server addresses that decide, as the clients write them. All
// clients must write them alike.
//
// Two clients exclude each other only if any two of their majorities share a node.
// Majorities of A,B,C and D,E,F share none. Nor do A,C, which is a majority of A,B,C, and
// B,D, which is one of A,B,D. So the mark on every node names the membership that the
// node belongs to, and a node refuses clients with another one.
//
// To replace a membership, all clients are first given both, one client after the other.
// This is a joint configuration: a client needs a majority of each, and so excludes
// clients with either. When all clients have both, Replace tells the nodes to refuse
// clients that know the old membership only, waits until those have lost their leases,
// and then makes the nodes of the new membership accept clients that know just that one.

// membership is the membership that decides, or two in a joint configuration.
type membership struct {
	next []string // the membership that replaces the current one; empty: none does
	sets [2]quorum.Set
	// text is the membership as people read it: sorted; for a joint configuration both,
	// with > between them. print is its fingerprint, which takes less room in every
	// request.
	text, fingerprint string
}

// fingerprintSize is the length of a fingerprint. The scripts rely on it.
const fingerprintSize = 12

// newMembership adds the nodes of next to addrs.
func newMembership(addrs []address, next []string) ([]address, membership, error) {
	var l membership
	var now []string
	for i, a := range addrs {
		now = append(now, a.host)
		l.sets[0] |= quorum.SetOf(i)
	}
	l.text, l.fingerprint = describe(now)
	if len(next) == 0 {
		l.sets[0] = 0
		return addrs, l, nil
	}
	for _, host := range next {
		host, err := hostPort(strings.TrimSpace(host), independent.port)
		if err != nil {
			return nil, l, err
		}
		if slices.Contains(l.next, host) {
			return nil, l, fmt.Errorf("redis: node %s is listed twice in next: list each server once", host)
		}
		l.next = append(l.next, host)
		at := slices.IndexFunc(addrs, func(a address) bool { return a.host == host })
		if at < 0 {
			a := addrs[0]
			a.host = host
			at, addrs = len(addrs), append(slices.Clip(addrs), a)
		}
		l.sets[1] |= quorum.SetOf(at)
	}
	if len(addrs) > quorum.MaxNodes {
		return nil, l, fmt.Errorf("redis: %d nodes in both memberships are more than the %d that are supported", len(addrs), quorum.MaxNodes)
	}
	text, print := describe(l.next)
	if print == l.fingerprint {
		return nil, l, errors.New("redis: next names the same nodes as the URL: there is nothing to replace")
	}
	l.text, l.fingerprint = l.text+">"+text, l.fingerprint+">"+print
	return addrs, l, nil
}

// describe returns a membership as text, and its fingerprint.
func describe(hosts []string) (text, print string) {
	text = strings.ToLower(strings.Join(slices.Sorted(slices.Values(hosts)), ","))
	sum := sha1.Sum([]byte(text))
	return text, hex.EncodeToString(sum[:])[:fingerprintSize]
}

// excluded reports whether a server with the fingerprint print in its mark refuses
// clients with this membership. The scripts decide it in the same way.
func (l membership) excluded(print string) bool {
	now, next, _ := strings.Cut(l.fingerprint, ">")
	return print != "" && print != nodemark.Unknown && print != l.fingerprint && print != now && print != next
}

// others returns the membership that a mark names, if its server refuses this client. Two
// memberships of one server count as equal, however the address is written.
func (l membership) others(mark nodemark.Mark) (list string, other bool) {
	if !l.excluded(mark.Print) || !strings.Contains(l.text+mark.List, ",") {
		return "", false
	}
	return mark.List, true
}

// recheckOmitted runs after a connection to n if its mark names another membership. The node
// may have been down while that was replaced by ours: the other nodes are asked, since
// what is known about them may be out of date.
func (n *node) recheckOmitted() {
	if n.isSingle() || len(n.s.membership.next) > 0 {
		return
	}
	for _, other := range n.s.nodes {
		other.mu.Lock()
		if other == n {
			other.omitted = true
		} else if other.fingerprint = ""; other.wire != nil {
			other.lookLocked()
		}
		other.mu.Unlock()
	}
}

// adoptOmitted makes nodes join our membership that were down when it replaced theirs. A
// majority of our nodes must record that replacement: they do so only after a majority of
// the old membership was told to refuse its clients and those have lost their leases. If
// our membership had been replaced in turn, no majority would name it any more.
func (s *Store) adoptOmitted() {
	records := map[string]int{}
	for _, n := range s.nodes {
		n.mu.Lock()
		if n.fingerprint == s.membership.fingerprint {
			records[n.before]++
		}
		n.mu.Unlock()
	}
	for _, n := range s.nodes {
		n.mu.Lock()
		left, print := n.omitted && n.wire != nil, n.fingerprint
		before, next, joint := strings.Cut(print, ">")
		if left && before != nodemark.Unknown && records[before] >= quorum.Majority(len(s.nodes)) && (!joint || next == s.membership.fingerprint) {
			n.omitted = false
		} else {
			left = false
		}
		n.mu.Unlock()
		if left {
			n.log.Info("node missed the replacement of its membership and joins the new one", "list", s.membership.text)
			c := setMembershipCommand(s.membership.fingerprint, s.membership.text, s.membership.fingerprint, print, before)
			n.put(call{command: c, timeout: s.o.ConnectTimeout, to: nobody{}}, false)
		}
	}
}
