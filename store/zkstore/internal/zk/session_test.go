package zk

import (
	"testing"
	"time"
)

// A server that does not answer the handshake is left soon, and all of them get more time in each round.
func TestCourtesyToSilentServers(t *testing.T) {
	const tick, patience = 2 * time.Second, 12 * time.Second
	for dials, want := range map[int]time.Duration{0: tick, 2: tick, 3: 2 * tick, 6: 4 * tick, 9: patience, 1000: patience} {
		if got := courtesy(tick, patience, 3, dials); got != want {
			t.Errorf("after %d attempts with 3 servers: %v, want %v", dials, got, want)
		}
	}
}
