package conn

import "testing"

// A reader looks for as long as that finds answers, and ever less often while it finds none.
func TestEagerLooksWhileItPays(t *testing.T) {
	var e eager
	sleeps := func() (n int) {
		for !e.looks(lookFor - 1) {
			n++
		}
		return n
	}
	for _, some := range []bool{true, true} {
		if n := sleeps(); n > 0 {
			t.Errorf("%d reads slept at once, want none while looks find answers", n)
		}
		e.found(some)
	}
	for _, want := range []int{0, 1, 3, 7, 15, 31, 63, 64, 64} {
		if n := sleeps(); n != want {
			t.Errorf("%d reads slept at once, want %d", n, want)
		}
		e.found(false)
	}
	sleeps()
	e.found(true)
	if n := sleeps(); n > 0 {
		t.Errorf("%d reads slept at once after a look that found an answer, want none", n)
	}
}

// A reader never looks if no answer has ever come within a look.
func TestEagerSleepsFarFromTheServer(t *testing.T) {
	var e eager
	for range 2 * lookAfter {
		if e.looks(lookFor) {
			t.Fatal("it looks, want it to sleep")
		}
	}
}
