package cluster

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Slots are as in the specification, and on a real server.
func TestSlots(t *testing.T) {
	// The check value of CRC-16/XMODEM is 0x31C3.
	for key, want := range map[string]int{"123456789": 0x31c3, "foo": 12182, "bar": 5061, "": 0, "{foo}x": 12182, "x{foo}": 12182, "{foo}{bar}": 12182, "{foo": SlotOf("{foo"), "a{}foo": SlotOf("a{}foo")} {
		if got := SlotOf(key); got != want {
			t.Errorf("%q is in slot %d, want %d", key, got, want)
		}
	}
	server := redistest.StartCluster(t, 1, 0).Masters[0]
	letters := "ab{}{}%\x00é"
	for range 500 {
		key := ""
		for range rand.IntN(8) {
			at := rand.IntN(len(letters))
			key += letters[at : at+1]
		}
		if got, want := strconv.Itoa(SlotOf(key)), server.Text(t, "CLUSTER", "KEYSLOT", key); got != want {
			t.Fatalf("%q is in slot %s, want %s as on the server", key, got, want)
		}
	}
}

// All keys of a lock are in one slot, whatever its name. No two locks have the same keys, and
// the name can be read from a key.
func TestNamesInACluster(t *testing.T) {
	letters, of := "a{}%7D25", map[string]string{}
	for range 20000 {
		name := ""
		for range 1 + rand.IntN(7) {
			name += string(letters[rand.IntN(len(letters))])
		}
		key := KeyOf(name)
		if a, b := SlotOf(key), SlotOf(script.KeyBegin+key+script.CounterEnd); a != b {
			t.Fatalf("the keys of %q are in the slots %d and %d", name, a, b)
		}
		if other, taken := of[key]; taken && other != name {
			t.Fatalf("%q and %q are both kept as %q", name, other, key)
		}
		of[key] = name
		if back, ok := NameOf(key); !ok || back != name {
			t.Fatalf("%q is kept as %q, which is read as %q, %v", name, key, back, ok)
		}
	}
}

// There is a tag for each slot.
func TestTags(t *testing.T) {
	// Each search takes a millisecond with the race detector: a few of each region will do.
	for slot := 0; slot < resp.Slots; slot += 61 {
		tag := TagIn(func(s int) bool { return s == slot }, rand.IntN(1<<(5*TagSize)))
		if len(tag) != TagSize || SlotOf(fmt.Sprintf("x{%s}y", tag)) != slot {
			t.Fatalf("slot %d has tag %q", slot, tag)
		}
	}
	if tag := TagIn(func(int) bool { return false }, 0); tag != "" {
		t.Errorf("a search that accepts no slot returns tag %q", tag)
	}
}
