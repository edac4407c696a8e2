package rule

import "testing"

// A lease has the smallest slot that was free when it began, and keeps it.
func TestSlots(t *testing.T) {
	var r Record
	ask := func(owner string) (ans Answer) {
		t.Helper()
		r, ans = Admit(r, Ask{Spec: Semaphore(3), Owner: owner, TTL: 100}, 0)
		return ans
	}
	for slot, owner := range []string{"a", "b", "c"} {
		if ans := ask(owner); ans.Verdict != Granted || ans.Slot != int64(slot) {
			t.Errorf("%s: %+v, want slot %d", owner, ans, slot)
		}
	}
	r, _ = Release(r, End{Owner: "b"}, 0)
	if ans := ask("c"); !ans.Again || ans.Slot != 2 {
		t.Errorf("c again: %+v, want slot 2", ans)
	}
	r = r.wait(Ask{Owner: "d", Weight: 1, Wait: 100, Fair: true}, 0)
	r, _ = Advance(r, 0, 0)
	if h := r.Holds[len(r.Holds)-1]; h.Owner != "d" || h.Slot != 1 {
		t.Errorf("d: %+v, want slot 1", h)
	}
}

// A mismatch says as which kind the lock is in use.
func TestMismatchNamesTheKind(t *testing.T) {
	r, _ := Admit(Record{}, Ask{Spec: ReadWrite, Owner: "a", TTL: 100}, 0)
	if _, ans := Admit(r, Ask{Spec: Mutex, Owner: "b", TTL: 100}, 0); ans.Verdict != Mismatch || ans.Spec != ReadWrite || ans.Blocker.Owner != "a" {
		t.Errorf("%+v", ans)
	}
}
