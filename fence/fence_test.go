package fence_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/fence"
)

func ExampleAdmit() {
	var highest fence.Token // of a resource that nobody has written to
	for _, offered := range []fence.Token{33, 33, 34, 33} {
		remembered, err := fence.Admit("ledger", highest, offered)
		fmt.Println(remembered, err)
		highest = remembered
	}
	// Output:
	// 33 <nil>
	// 33 <nil>
	// 34 <nil>
	// 34 "ledger" refuses fencing token 33: it has seen 34, so the lease is over and a later holder has written
}

func TestAdmitRefusesSmallerAcceptsEqualRemembersLarger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var highest fence.Token
		for _, n := range rapid.SliceOf(rapid.Uint64Range(1, 9)).Draw(t, "offered") {
			offered := fence.Token(n)
			got, err := fence.Admit("r", highest, offered)
			want := max(highest, offered)
			if got != want || (err == nil) != (offered == want) {
				t.Fatalf("Admit(%v, %v) = %v, %v, want %v, and an error only if the offered token is smaller", highest, offered, got, err, want)
			}
			if err != nil {
				var stale *fence.StaleError
				if !errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) || *stale != (fence.StaleError{Resource: "r", Offered: offered, Highest: highest}) {
					t.Fatalf("Admit(%v, %v): %#v, want a StaleError that names both tokens and the resource", highest, offered, err)
				}
			}
			highest = got
		}
	})
}

func TestAdmitRefusesInvalidTokens(t *testing.T) {
	for _, offered := range []fence.Token{0, fence.Max + 1, 1<<64 - 1} {
		got, err := fence.Admit("ledger", 7, offered)
		if got != 7 || !errors.Is(err, fence.ErrInvalid) || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "ledger") {
			t.Errorf("Admit(7, %v) = %v, %v, want 7 and ErrInvalid that names the resource", offered, got, err)
		}
	}
	if got, err := fence.Admit("ledger", fence.Max, fence.Max); got != fence.Max || err != nil {
		t.Errorf("Admit of the largest token again = %v, %v, want %v", got, err, fence.Max)
	}
}

func TestParse(t *testing.T) {
	for _, want := range []fence.Token{1, 42, 1_790_000_000_000_000, fence.Max} {
		if got, err := fence.Parse(want.String()); got != want || err != nil {
			t.Errorf("Parse(%q) = %v, %v, want %[1]s", want.String(), got, err)
		}
	}
	for _, s := range []string{"", "0", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "1_0", "9007199254740992", "99999999999999999999", "one", strings.Repeat("9", 1000)} {
		if got, err := fence.Parse(s); !errors.Is(err, fence.ErrInvalid) || len(err.Error()) > 200 {
			t.Errorf("Parse(%.30q) = %v, %v, want ErrInvalid with a text of 200 bytes at most", s, got, err)
		}
	}
}
