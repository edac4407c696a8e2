//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// TestTokenIsThatOfTheCommand checks that show and ls print the token that the command under
// the lock was given, which is what the log of a guard has.
func TestTokenIsThatOfTheCommand(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	p := s.start("run", "x", "--", "sh", "-c", "echo $LEASEHOLD_TOKEN; read line; exit 0")
	poll(t, func() string {
		given := strings.TrimSpace(p.out.String())
		if given == "" {
			return "the command has not begun"
		}
		one := statejson.State{Lease: &statejson.Lease{}}
		if err := json.Unmarshal([]byte(s.run(0, "show", "x", "--json").out.String()), &one); err != nil || one.Token.String() != given {
			t.Errorf("show: token %v, %v; the command has %s, want the same token", one.Token, err, given)
		}
		if out := s.run(0, "ls").out.String(); !strings.Contains(out, given) {
			t.Errorf("ls: token %s is missing:\n%s, want text with %q", given, out, given)
		}
		return ""
	})
	p.in.Close()
	p.wants(0)
}

// TestRedissonsLock checks that a lock of Redisson is taken (124) and waited for, not a
// failure (125).
func TestRedissonsLock(t *testing.T) {
	server := redistest.Start(t)
	s := newSite(t, storeVar+"=redis://"+server.Addr())
	const holder = "0b16b1f0-5a25-4b5c-a22b-3f5b0b1c8f6e:31"
	server.Text(t, "HSET", "x", holder, "1")
	server.Text(t, "PEXPIRE", "x", "600000")
	if p := s.run(124, "run", "x", "--try", "--", "true"); !strings.Contains(p.err.String(), holder) {
		t.Errorf("the holder is not named: %s, want text with %q", p.err.String(), holder)
	}
	if out := s.run(124, "show", "x", "--exit-code").out.String(); !strings.Contains(out, holder) {
		t.Errorf("show: %s, want text with %q", out, holder)
	}
	next := s.start("run", "x", "--", "true")
	poll(t, func() string {
		if n := server.Text(t, "LLEN", "{x}:line"); n != "1" {
			return fmt.Sprintf("%s wait", n)
		}
		return ""
	})
	server.Text(t, "DEL", "x")
	next.wants(0)
}
