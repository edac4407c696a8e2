package redisstore

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// A list is the addresses as clients write them: all clients write the same.
//
// Two clients exclude each other if their majorities share a node. Those of the
// lists A,B,C and D,E,F share none, nor do A,C and B,D of A,B,C and A,B,D. So
// every node keeps, in its mark, which list it is one of, and refuses clients
// that have another.
//
// To replace a list, clients are given both, one after the other: they ask for a
// majority of each, and so exclude clients with either. When all have them,
// Replace tells the nodes to refuse clients that know the old list only, waits
// until none of those can have a lease, and then has the nodes of the new list
// serve clients that know just that.

// lists are the nodes that decide.
type lists struct {
	next []string // replacing the others; empty: nothing is replaced
	sets [2]quorum.Set
	// text is the list as people read it: sorted, and while one list replaces
	// another both, with > between them. print is its fingerprint, which takes
	// less room in every request.
	text, print string
}

// fingerprint is as long as the scripts take it to be.
const fingerprint = 12

// newLists adds the nodes of next to addrs.
func newLists(addrs []address, next []string) ([]address, lists, error) {
	var l lists
	var now []string
	for i, a := range addrs {
		now = append(now, a.host)
		l.sets[0] |= quorum.SetOf(i)
	}
	l.text, l.print = describe(now)
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
		return nil, l, fmt.Errorf("redis: %d nodes in both lists are more than the %d that make sense", len(addrs), quorum.MaxNodes)
	}
	text, print := describe(l.next)
	if print == l.print {
		return nil, l, errors.New("redis: next lists the same nodes: there is nothing to replace")
	}
	l.text, l.print = l.text+">"+text, l.print+">"+print
	return addrs, l, nil
}

// describe returns a list as text and its fingerprint.
func describe(hosts []string) (text, print string) {
	text = strings.ToLower(strings.Join(slices.Sorted(slices.Values(hosts)), ","))
	sum := sha1.Sum([]byte(text))
	return text, hex.EncodeToString(sum[:])[:fingerprint]
}

// excluded says whether a server of that list refuses clients that have these, as
// the scripts decide it.
func (l lists) excluded(print string) bool {
	now, next, _ := strings.Cut(l.print, ">")
	return print != "" && print != nodemark.Unknown && print != l.print && print != now && print != next
}

// others is the list that a mark names, if its server refuses clients with these. Where
// both are lists of one server they are the same one, however it is written.
func (l lists) others(mark nodemark.Mark) (list string, other bool) {
	if !l.excluded(mark.Print) || !strings.Contains(l.text+mark.List, ",") {
		return "", false
	}
	return mark.List, true
}

// reconsider is called when n has just been connected to and names another list. It may
// have been down while that list was replaced by ours: the other nodes are asked, as what
// we knew of them may be old.
func (n *node) reconsider() {
	if n.alone() || len(n.s.lists.next) > 0 {
		return
	}
	for _, other := range n.s.nodes {
		other.mu.Lock()
		if other == n {
			other.omitted = true
		} else if other.print = ""; other.wire != nil {
			other.lookLocked()
		}
		other.mu.Unlock()
	}
}

// adopt has the nodes join our list that were left out when it replaced theirs, as a
// majority of our nodes records: it records that after a majority of the old list was
// told to refuse clients that know no other, and those have lost their leases since. If
// ours had been replaced in turn, no majority would name it any more.
func (s *Store) adopt() {
	records := map[string]int{}
	for _, n := range s.nodes {
		n.mu.Lock()
		if n.print == s.lists.print {
			records[n.before]++
		}
		n.mu.Unlock()
	}
	for _, n := range s.nodes {
		n.mu.Lock()
		left, print := n.omitted && n.wire != nil, n.print
		before, next, joint := strings.Cut(print, ">")
		if left && before != nodemark.Unknown && records[before] >= quorum.Majority(len(s.nodes)) && (!joint || next == s.lists.print) {
			n.omitted = false
		} else {
			left = false
		}
		n.mu.Unlock()
		if left {
			n.log.Info("the node was left out when its list was replaced, and joins the new one", "list", s.lists.text)
			c := relistCommand(s.lists.print, s.lists.text, s.lists.print, print, before)
			n.put(call{command: c, timeout: s.o.ConnectTimeout, to: nobody{}}, false)
		}
	}
}

// otherList is the outcome of a node that is one of another list.
func otherList(list value) store.NodeOutcome {
	theirs := "others"
	if now, next, both := strings.Cut(string(list.text), ">"); both { // quoted: it may be anything
		theirs = fmt.Sprintf("%q, which are being replaced by %q", now, next)
	} else if now != "" {
		theirs = strconv.Quote(now)
	}
	return store.NodeOutcome{Outcome: store.Refused, Err: fmt.Errorf("%w: it decides together with %s: give all clients one list, or both while one replaces the other", errOtherList, theirs)}
}

var errOtherList = errors.New("this client has another list of nodes")
