package redisstore

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

// What is not said as the hand script says it is not believed.
func TestTold(t *testing.T) {
	for _, m := range []string{
		"", " ", "free", "free ", "free a b", "handed a", "handed a 1 2 3", "handed a 1 2 3 4 5 6", "handed a 1 2 3 4 -5", "handed a 1 2 3 4 ", "handed a 0 2 3 4", "handed a -1 2 3 4", "handed a 1 -2 3 4",
		"handed a 1 9223372036854775808 3 4", "handed a 1 2 3 1000000", "handed a 1 2 x 4", "handed a 1 2 0 0", "handed  1 2 3 4", "Free a", "handed\ta 1 2 3 4",
	} {
		if told, ok := parsePush(m); ok {
			t.Errorf("%q is taken for %+v", m, told)
		}
	}
	if told, ok := parsePush("free a.b"); !ok || told.owner != "a.b" || told.granted {
		t.Errorf("free: %+v, %v", told, ok)
	}
	told, ok := parsePush("handed a.b 17 9223372036854775807 1790000000 123456")
	if !ok || !told.granted || told.owner != "a.b" || told.token != 17 || told.stamp != 1<<63-1 || told.clock != 1790000000_123456_000 {
		t.Errorf("handed: %+v, %v", told, ok)
	}
	if told.counted {
		t.Errorf("handed: %+v reserves fewer tokens than were asked for", told)
	}
	if told, ok = parsePush("handed a 17 2 3 4 5"); !ok || !told.counted || told.reserved != 5 {
		t.Errorf("handed, with fewer tokens: %+v, %v", told, ok)
	}
}

// FuzzTold: whatever is taken for a message says what it seems to.
func FuzzTold(f *testing.F) {
	for _, m := range []string{"free a", "handed a 1 2 3 4", "handed a.b 17 9223372036854775807 1790000000 123456", "handed a 01 2 3 4", "free \x00"} {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, m string) {
		told, ok := parsePush(m)
		if !ok {
			return
		}
		if err := store.CheckOwner(told.owner); err != nil {
			t.Errorf("%q: %v", m, err)
		}
		if told.granted && (told.token == 0 || told.stamp < 0 || told.clock <= 0) || !told.granted && m != "free "+told.owner {
			t.Errorf("%q: %+v", m, told)
		}
		var what, owner string
		if n, _ := fmt.Sscan(m, &what, &owner); n != 2 || owner != told.owner {
			t.Errorf("%q: %+v", m, told)
		}
	})
}
