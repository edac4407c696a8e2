package store

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

func TestHeldForByToken(t *testing.T) {
	now := time.Unix(1790000000, 0)
	at := func(d time.Duration) fence.Token { return fence.Token(now.Add(d).UnixMicro()) }
	asked := Holder{Since: now.Add(-time.Minute)}
	for _, c := range []struct {
		name   string
		token  fence.Token
		holder Holder
		want   time.Duration
	}{
		{"granted after a wait", at(-20 * time.Second), asked, 20 * time.Second},
		{"granted half a second before Since", at(-time.Minute - time.Second/2), asked, time.Minute + time.Second/2},
		{"no description", at(-time.Hour), Holder{}, time.Hour},
		{"a little ahead of the clock", at(time.Second / 2), asked, 1},
		{"no token", 0, asked, 0},
		{"a token that is no time", 7, asked, 0},
		{"a clock behind the holder's", at(-time.Hour), asked, 0},
		{"a clock ahead of ours", at(time.Hour), asked, 0},
	} {
		if got := HeldFor(c.token, c.holder, now); got != c.want {
			t.Errorf("%s: held for %v, want %v", c.name, got, c.want)
		}
	}
}
