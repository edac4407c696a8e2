package redisstore

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// A break that too few servers answer does not report that the lease is another one, although a
// server has it with a later token: the silent servers may have the one that was shown.
func TestResultOfABreak(t *testing.T) {
	for _, c := range []struct {
		name            string
		answered, later quorum.Set
		broken, other   bool
	}{
		{"a majority", quorum.SetOf(0, 1), 0, true, false},
		{"a majority beside a later token", quorum.SetOf(0, 1), quorum.SetOf(2), true, false},
		{"later on a majority", quorum.SetOf(0), quorum.SetOf(1, 2), false, true},
		{"later on one, and one is silent", quorum.SetOf(0), quorum.SetOf(1), false, false},
		{"later on one, and two are silent", 0, quorum.SetOf(1), false, false},
		{"nobody answers", 0, 0, false, false},
	} {
		if broken, other := breakResult(quorum.Config{Nodes: 3}, c.answered, c.later); broken != c.broken || other != c.other {
			t.Errorf("%s: broken %v, another lease %v, want %v and %v", c.name, broken, other, c.broken, c.other)
		}
	}
}
