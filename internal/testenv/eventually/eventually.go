// Package eventually waits in tests for what no event announces.
package eventually

import (
	"testing"
	"time"
)

// patience bounds the wait for something that has to come, on a loaded machine, too.
const patience = 90 * time.Second

// True calls ok every few milliseconds until it returns true. It ends the test if that takes
// too long; what completes the sentence "waited in vain until ...".
func True(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %v in vain until %s", patience, what)
		}
	}
}
