//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
)

// Only a lock that several can hold has slots: nothing that is printed about a mutex
// names one.
func TestSlotsInJSON(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		flags []string
		slots bool
	}{
		{[]string{"--ttl", "50s"}, false},
		{[]string{"--ttl", "50s", "--permits", "1"}, false},
		{[]string{"--ttl", "50s", "--permits", "2"}, true},
	} {
		out := s.run(0, append([]string{"acquire", "x", "--json"}, c.flags...)...).out.String()
		if strings.Contains(out, `"slot": 0`) != c.slots || strings.Contains(out, "slot") != c.slots {
			t.Errorf("acquire %q printed %s, want a slot: %v", c.flags, out, c.slots)
		}
		var lease leaseJSON
		if err := json.Unmarshal([]byte(out), &lease); err != nil {
			t.Fatal(err)
		}
		w := s.start("watch", "x", "--every", "20ms", "--json")
		w.says(&w.out, `"held"`)
		s.run(0, "release", "x", "--owner", lease.Owner)
		w.says(&w.out, `"free"`)
		w.signal(syscall.SIGTERM)
		w.end()
		if n := strings.Count(w.out.String(), `"slot":0`); n != map[bool]int{true: 2}[c.slots] { // held and over
			t.Errorf("with %q watch printed a slot %d times, want %d: %s", c.flags, n, map[bool]int{true: 2}[c.slots], w.out.String())
		}
	}
}
