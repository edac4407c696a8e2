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

// If a function panics or ends its goroutine, Run logs the reason, calls the function for that
// case, and passes no panic on.
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
			failed, contained := false, false
			go func() {
				defer func() { contained = recover() == nil }()
				callback.Guard{Log: slog.New(slog.NewTextHandler(&log, nil))}.Run(c.f, func() { failed = true })
			}()
			synctest.Wait()
			if want := c.logged != ""; failed != want || !contained || !strings.Contains(log.String(), c.logged) || want != (log.Len() > 0) {
				t.Errorf("%s: failed %v, want %v; contained %v, want true; logged %q, want %q", c.name, failed, want, contained, log.String(), c.logged)
			}
		})
	}
}

// A Notifier calls the functions in the order in which they are added, also if one of them
// ends the goroutine or panics.
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
