package store

import (
	"testing"
	"time"
)

func TestOwnersInOrder(t *testing.T) {
	early, late := NewOwnerAt(time.UnixMicro(1790000000000001)), NewOwnerAt(time.UnixMicro(1790000000000002))
	for _, o := range []string{early, late} {
		if err := CheckOwner(o); err != nil {
			t.Error(err)
		}
	}
	if Rank(early) != 1790000000000001 || Rank(NewOwner()) != 0 || Rank("x.") != 0 || Rank("x.zzzzzzzzzzzzzzz") != 0 {
		t.Error(Rank(early), Rank(NewOwner()))
	}
	if !Before(early, late) || Before(late, early) || Before(early, early) || !Before("a", "b") || !Before("z", early) {
		t.Error("the order is wrong")
	}
	if again := SameRank(early); again == early || Rank(again) != Rank(early) || SameRank(again) == again {
		t.Errorf("%s, of the rank of %s", again, early)
	}
}
