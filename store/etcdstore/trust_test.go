package etcdstore

import (
	"testing"
	"time"
)

// Waiters with many others before them trust their inbox for longer, but not for ever, and not
// behind native clients.
func TestTrustOfWaiters(t *testing.T) {
	ours, native := successor{Process: "p"}, successor{}
	for _, c := range []struct {
		what      string
		got, want time.Duration
	}{
		{"behind one", unlikelyBehind(2), 10 * time.Millisecond},
		{"behind 63", unlikelyBehind(64), 320 * time.Millisecond},
		{"behind a million", unlikelyBehind(1_000_001), time.Second},
		{"after a wait", unlikelyAfter(80*time.Millisecond, []successor{ours, ours}), 160 * time.Millisecond},
		{"after a long wait", unlikelyAfter(time.Hour, []successor{ours}), time.Second},
		{"behind a native client", unlikelyAfter(80*time.Millisecond, []successor{ours, native}), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}
