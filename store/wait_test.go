package store

import (
	"testing"
	"time"
)

// Owners from NewOwnerAt are in the order of their ranks, after owners without one.
func TestOwnersInOrder(t *testing.T) {
	early, late := NewOwnerAt(time.UnixMicro(1790000000000001)), NewOwnerAt(time.UnixMicro(1790000000000002))
	for _, o := range []string{early, late} {
		if err := CheckOwner(o); err != nil {
			t.Error(err)
		}
	}
	if Rank(early) != 1790000000000001 || Rank(NewOwner()) != 0 || Rank("x.") != 0 || Rank("x.zzzzzzzzzzzzzzz") != 0 {
		t.Errorf("ranks of NewOwnerAt %d, NewOwner %d and of malformed owners %d, %d, want 1790000000000001 and 0 for the others", Rank(early), Rank(NewOwner()), Rank("x."), Rank("x.zzzzzzzzzzzzzzz"))
	}
	if !Before(early, late) || Before(late, early) || Before(early, early) || !Before("a", "b") || !Before("z", early) {
		t.Errorf("Before is no order: early and late %v, late and early %v, early twice %v, two without a rank %v, without a rank and early %v; want true, false, false, true, true",
			Before(early, late), Before(late, early), Before(early, early), Before("a", "b"), Before("z", early))
	}
	if again := SameRank(early); again == early || Rank(again) != Rank(early) || SameRank(again) == again {
		t.Errorf("SameRank(%s) = %s, want a new owner of the same rank each time", early, again)
	}
}
