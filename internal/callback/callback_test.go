package callback_test

import (
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leasehold-dev/leasehold/internal/callback"
)

// A function that panics or ends its goroutine is logged with the reason, and the
// function for that case is called.
func TestFailuresAreLogged(t *testing.T) {
	for _, c := range []struct {
		name, logged string
		f            func()
	}{
		{"panic", `panic="no such key"`, func() { panic("no such key") }},
		{"end of the goroutine", "panic=runtime.Goexit", runtime.Goexit},
		{"return", "", func() {}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			failed, left := false, false
			go func() {
				defer func() { left = recover() == nil }()
				callback.Guard{Log: slog.New(slog.NewTextHandler(&log, nil))}.Run(c.f, func() { failed = true })
			}()
			synctest.Wait()
			if want := c.logged != ""; failed != want || !left || !strings.Contains(log.String(), c.logged) || want != (log.Len() > 0) {
				t.Errorf("%s: failed %v, contained %v, logged %q", c.name, failed, left, log.String())
			}
		})
	}
}

// A notifier calls what is added in order, also when one of the functions ends the
// goroutine or panics.
func TestNotificationsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n callback.Notifier
		n.Guard.Log = slog.New(slog.DiscardHandler)
		var got []int
		n.Add(func() {
			n.Add(func() { got = append(got, 2); runtime.Goexit() })
			n.Add(func() { got = append(got, 3); panic("x") })
			n.Add(func() { got = append(got, 4) })
			got = append(got, 1)
		})
		synctest.Wait()
		if !slices.IsSorted(got) || len(got) != 4 {
			t.Errorf("called in the order %v, want 1 to 4", got)
		}
	})
}
