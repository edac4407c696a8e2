package membership

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
)

// Indexes returns the nodes of each membership.
func (l List) Indexes(nodes int) [][]int {
	sets := l.Sets[:]
	if len(l.Next) == 0 {
		var all quorum.Set
		for i := range nodes {
			all |= quorum.SetOf(i)
		}
		sets = []quorum.Set{all}
	}
	lists := make([][]int, len(sets))
	for k, set := range sets {
		for i := range nodes {
			if set.Has(i) {
				lists[k] = append(lists[k], i)
			}
		}
	}
	return lists
}

// List is the membership that decides, or two in a joint configuration.
type List struct {
	Next []string // the membership that replaces the current one; empty: none does
	Sets [2]quorum.Set
	// Text is the membership as people read it: sorted; for a joint configuration both,
	// with > between them. print is its fingerprint, which takes less room in every
	// request.
	Text, Fingerprint string
}

// fingerprintSize is the length of a fingerprint. The scripts rely on it.
const fingerprintSize = 12

// New adds the nodes of next to addrs.
func New(addrs []config.Address, next []string) ([]config.Address, List, error) {
	addrs, l, err := parse(addrs, next)
	return addrs, l, config.Invalid(err)
}

func parse(addrs []config.Address, next []string) ([]config.Address, List, error) {
	var l List
	var now []string
	for i, a := range addrs {
		now = append(now, a.Name())
		l.Sets[0] |= quorum.SetOf(i)
	}
	l.Text, l.Fingerprint = Describe(now)
	if len(next) == 0 {
		l.Sets[0] = 0
		return addrs, l, nil
	}
	var then []string
	for _, host := range next {
		host, err := config.ServerAddress(strings.TrimSpace(host))
		if err != nil {
			return nil, l, err
		}
		if slices.Contains(l.Next, host) {
			return nil, l, fmt.Errorf("redis: node %s is listed twice in next: list each server once", host)
		}
		l.Next = append(l.Next, host)
		at := slices.IndexFunc(addrs, func(a config.Address) bool { return a.Host == host })
		if at < 0 {
			a := addrs[0]
			a.Host = host
			at, addrs = len(addrs), append(slices.Clip(addrs), a)
		}
		l.Sets[1] |= quorum.SetOf(at)
		then = append(then, addrs[at].Name())
	}
	if len(addrs) > quorum.MaxNodes {
		return nil, l, fmt.Errorf("redis: %d nodes in both memberships are more than the %d that are supported", len(addrs), quorum.MaxNodes)
	}
	text, print := Describe(then)
	if print == l.Fingerprint {
		return nil, l, errors.New("redis: next names the same nodes as the URL: there is nothing to replace")
	}
	l.Text, l.Fingerprint = l.Text+">"+text, l.Fingerprint+">"+print
	return addrs, l, nil
}

// Describe returns a membership as text, and its fingerprint. It has the names of the addresses.
func Describe(hosts []string) (text, print string) {
	text = strings.ToLower(strings.Join(slices.Sorted(slices.Values(hosts)), ","))
	sum := sha1.Sum([]byte(text))
	return text, hex.EncodeToString(sum[:])[:fingerprintSize]
}

// Excluded reports whether a server with the fingerprint print in its mark refuses
// clients with this membership. The scripts decide it in the same way.
func (l List) Excluded(print string) bool {
	now, next, _ := strings.Cut(l.Fingerprint, ">")
	return print != "" && print != nodemark.Unknown && print != l.Fingerprint && print != now && print != next
}

// WasAlone reports whether a mark names a single server, which may become one of the several of
// this membership. The scripts decide it in the same way.
func (l List) WasAlone(mark nodemark.Mark) bool {
	first, _, _ := strings.Cut(l.Text, ">")
	return mark.List != nodemark.Unknown && !strings.Contains(mark.List, ",") && strings.Contains(first, ",")
}

// Others returns the membership that a mark names, if its server refuses this client. Two
// memberships of one server count as equal, however the address is written.
func (l List) Others(mark nodemark.Mark) (list string, other bool) {
	if !l.Excluded(mark.Print) || !strings.Contains(l.Text+mark.List, ",") {
		return "", false
	}
	return mark.List, true
}
