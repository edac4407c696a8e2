package script

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

// A push that the hand script cannot have sent is refused.
func TestParsePush(t *testing.T) {
	for _, m := range []string{
		"", " ", "free", "free ", "free a b", "handed a", "handed a 1 2 3", "handed a 1 2 3 4 -5", "handed a 1 2 3 4 5 x", "handed a 1 2 3 4 5 5 6", "handed a 1 2 3 4 ", "handed a 0 2 3 4", "handed a -1 2 3 4", "handed a 1 -2 3 4",
		"handed a 1 9223372036854775808 3 4", "handed a 1 2 3 1000000", "handed a 1 2 x 4", "handed a 1 2 0 0", "handed  1 2 3 4", "Free a", "handed\ta 1 2 3 4",
	} {
		if told, ok := ParsePush(m); ok {
			t.Errorf("%q is read as %+v, want it refused", m, told)
		}
	}
	if told, ok := ParsePush("free a.b"); !ok || told.Owner != "a.b" || told.Granted {
		t.Errorf("free: %+v, %v, want the owner a.b without a grant", told, ok)
	}
	told, ok := ParsePush("handed a.b 17 9223372036854775807 1790000000 123456")
	if !ok || !told.Granted || told.Owner != "a.b" || told.Token != 17 || told.Stamp != 1<<63-1 || told.Clock != 1790000000_123456_000 {
		t.Errorf("handed: %+v, %v, want a grant of token 17 to a.b", told, ok)
	}
	if told, ok = ParsePush("handed a 17 2 3 4 5 5,6"); !ok || told.Slot != 5 || told.Slots != "5,6" {
		t.Errorf("handed, with slots: %+v, %v, want slots 5 and 6", told, ok)
	}
}

// FuzzParsePush checks that a push that is accepted means what its text says.
func FuzzParsePush(f *testing.F) {
	for _, m := range []string{"free a", "handed a 1 2 3 4", "handed a.b 17 9223372036854775807 1790000000 123456", "handed a 01 2 3 4", "free \x00"} {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, m string) {
		told, ok := ParsePush(m)
		if !ok {
			return
		}
		if err := store.CheckOwner(told.Owner); err != nil {
			t.Errorf("%q is accepted with an invalid owner: %v", m, err)
		}
		if told.Granted && (told.Token == 0 || told.Stamp < 0 || told.Clock <= 0) || !told.Granted && m != "free "+told.Owner {
			t.Errorf("%q is read as %+v", m, told)
		}
		var what, owner string
		if n, _ := fmt.Sscan(m, &what, &owner); n != 2 || owner != told.Owner {
			t.Errorf("%q is read as %+v", m, told)
		}
	})
}
