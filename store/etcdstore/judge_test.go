package etcdstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

// The class follows the number of voting members and their versions, and Why says what
// is missing.
func TestClassFollowsTheCluster(t *testing.T) {
	down := errors.New("down")
	cluster := func(voters int, versions ...string) *Cluster {
		c := &Cluster{Voters: voters}
		for i, v := range versions {
			m := Member{Endpoint: "e", ID: uint64(i + 1), Leader: 1, Version: v}
			if v == "" {
				m.Err = down
			}
			if v == "learner" {
				m.Learner = true
			}
			c.Members = append(c.Members, m)
		}
		return c
	}
	unled := cluster(3, "", "3.6.15", "3.6.15")
	electing := cluster(3, "3.6.15", "3.6.15")
	for i := range electing.Members {
		electing.Members[i].Leader = 0
	}
	recalled := cluster(3, "", "3.6.15", "3.6.15")
	recalled.Members[1].Leader, recalled.Members[2].Leader, recalled.Members[0].Endpoint = 0, 0, "down"
	recalled.recall(&Cluster{Members: []Member{{Endpoint: "down", ID: 1, Version: "3.6.15"}}})
	unnamed := cluster(3, "3.6.15", "3.6.15")
	unnamed.Members[0].Leader, unnamed.Members[1].Leader = 3, 3
	for _, x := range []struct {
		c     *Cluster
		class store.Class
		why   string // it begins with "?" if the class may be higher
	}{
		{nil, store.Efficiency, "?no member"},
		{cluster(0, ""), store.Efficiency, "?no member"},
		{cluster(3, "3.6.15", "3.6.15", "3.6.15"), store.Consensus, ""},
		{cluster(3, "3.4.31", "3.5.13", "3.7.0"), store.Consensus, ""},
		{cluster(3, "3.6.15", "3.6.15", ""), store.Consensus, ""},
		{cluster(4, "3.6.15", "3.6.15", "3.6.15", "learner"), store.Consensus, ""},
		{unled, store.Efficiency, "?the version of the leader"},
		{electing, store.Efficiency, "?the cluster has no leader"},
		{recalled, store.Consensus, ""},
		{unnamed, store.Efficiency, "the version of the leader"},
		{cluster(3, "3.6.15", "", ""), store.Efficiency, "?the versions of only 1 of the 3"},
		{cluster(5, "3.6.15", ""), store.Efficiency, "only 1 of the 5"},
		{cluster(5, "3.6.15", "3.6.15"), store.Efficiency, "only 2 of the 5"},
		{cluster(3, "3.6.15", "3.4.30", "3.6.15"), store.Efficiency, "3.4.31"},
		{cluster(3, "3.6.15", "3.5.12", "3.6.15"), store.Efficiency, "3.5.13"},
		{cluster(3, "3.6.15", "3.3.27", "3.6.15"), store.Efficiency, "3.4.31"},
		{cluster(3, "3.6.15", "what", "3.6.15"), store.Efficiency, "judged"},
		{cluster(1, "3.6.15"), store.CrashSafe, "1 voting"},
		{cluster(2, "3.6.15", "3.6.15-rc.1"), store.CrashSafe, "2 voting"},
		{cluster(1, "3.4.23"), store.Efficiency, "3.4.31"},
	} {
		why, pending := strings.CutPrefix(x.why, "?")
		x.why = why
		if got := x.c.judge().pending; got != pending {
			t.Errorf("%+v: pending %v, want %v", x.c, got, pending)
		}
		if class, why := x.c.Class(), x.c.Why(); class != x.class || !strings.Contains(why, x.why) || (why == "") != (class == store.Consensus) {
			t.Errorf("%+v: %v, %q, want %v with %q", x.c, class, why, x.class, x.why)
		}
	}
}

// Keys are those of native locks, and no name of a lock reaches the keys of another, or
// those of the store.
func TestLayout(t *testing.T) {
	l := layout{"base"}
	for name, key := range map[string]string{
		"a":        "base/a/1f",
		"a/b":      "base/a%2Fb/1f",
		"a%2Fb":    "base/a%252Fb/1f",
		"!inbox":   "base/%21inbox/1f",
		"a!":       "base/a!/1f",
		"%21":      "base/%2521/1f",
		"\x00\xff": "base/\x00\xff/1f",
	} {
		if got := l.key(name, 0x1f); got != key {
			t.Errorf("%q: key %q, want %q", name, got, key)
		}
		if got, ok := l.nameOf(key); !ok || got != name {
			t.Errorf("%q: name %q %v, want %q", key, got, ok, name)
		}
	}
	for _, key := range []string{l.inbox("p") + "1f", l.floor(), "base/a", "base/a/", "base//x", "other/a/1f", "base", "base/100%/1f", "base/a%21/1f", "base/a%2fb/1f"} {
		if name, ok := l.nameOf(key); ok {
			t.Errorf("%q is taken for a key of lock %q", key, name)
		}
	}
}
