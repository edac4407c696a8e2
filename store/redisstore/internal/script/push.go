package script

import (
	"math"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// push is a push that a script published; see offer.lua.
type push struct {
	Owner string
	// Granted is set if owner now has the lock, with the token, by the request of that
	// stamp; clock is the server's. Otherwise the lock is free.
	Granted bool
	Token   uint64
	Slot    int64  // see store.Grant
	Slots   string // see store.Grant
	Stamp   clock.Instant
	Clock   clock.Instant
}

// ParsePush parses a message. Anybody may publish to the channel.
func ParsePush(message string) (t push, ok bool) {
	words := strings.Split(message, " ")
	if len(words) < 2 || store.CheckOwner(words[1]) != nil {
		return push{}, false
	}
	t.Owner = words[1]
	switch {
	case words[0] == "free" && len(words) == 2:
		return t, true
	case words[0] != "handed" || len(words) < 6 || len(words) > 8:
		return push{}, false
	}
	token, err1 := strconv.ParseUint(words[2], 10, 64)
	stamp, err2 := strconv.ParseUint(words[3], 10, 64)
	if err1 != nil || err2 != nil || token == 0 || stamp > math.MaxInt64 {
		return push{}, false
	}
	text := func(s string) resp.Value { return resp.Value{Kind: '$', Text: []byte(s)} }
	t.Granted, t.Token, t.Stamp = true, token, clock.Instant(stamp)
	t.Clock = ClockOf([]resp.Value{text(words[4]), text(words[5])})
	if len(words) >= 7 {
		slot, err := strconv.ParseInt(words[6], 10, 64)
		if err != nil || slot < 0 {
			return push{}, false
		}
		t.Slot = slot
	}
	if len(words) == 8 {
		if _, ok := rule.Slots(words[7]).Numbers(); !ok {
			return push{}, false
		}
		t.Slots = words[7]
	}
	return t, t.Clock != 0
}
