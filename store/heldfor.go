package store

import (
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// HeldFor returns State.HeldFor of a store whose tokens are drawn with the grant and
// follow its clock in microseconds, such as Redis and SQL: the token then tells when
// it was drawn. HeldFor returns 0, unknown, if the token is ahead of the clock by more
// than tokens may be, or if the clocks of the store and of the holder contradict each
// other.
func HeldFor(token fence.Token, h Holder, now time.Time) time.Duration {
	const ahead = time.Second // tokens, and what clocks may differ by
	granted := time.UnixMicro(int64(token))
	if token == 0 || granted.After(now.Add(ahead)) || granted.Before(h.Since.Add(-ahead)) {
		return 0
	}
	return max(now.Sub(granted), 1)
}
