package conn

import (
	"testing"
	"time"
)

// A server that was away for an instant is tried again soon, one that is away for long
// once a second.
func TestRetryPause(t *testing.T) {
	away, tries := time.Duration(0), 0
	for ; away < time.Second; tries++ {
		p := retryPause(tries)
		if p > 100*time.Millisecond {
			t.Errorf("a pause of %v after %v, want at most 100ms", p, away)
		}
		away += p
	}
	for ; away < time.Minute; tries++ {
		away += retryPause(tries)
	}
	if p := retryPause(tries); p != time.Second {
		t.Errorf("a pause of %v after a minute, want 1s", p)
	}
}
