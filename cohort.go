package leasehold

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// Cohort bounds how a lease is passed on from one goroutine of a process to the
// next that waits for the same lock, without asking the store. Each pass has a
// larger token and a Lease of its own, and costs a microsecond instead of a round
// trip. Waiting goroutines are served in FIFO order; those of other processes are
// served when a bound is reached.
//
// At a bound, one round trip asks the store whether anybody waits elsewhere, or in
// this process with other options (see Lock.Acquire). If so, the lock is released
// and this process joins the queue again. If not, both bounds start anew.
//
// Zero in either field allows no pass, so &Cohort{} turns passing off.
type Cohort struct {
	// Passes is the largest number of passes in a row.
	Passes int
	// For is how long after this process was granted the lock a pass may begin. It
	// does not end anybody's hold: LockOptions.MaxHold does.
	For time.Duration
}

// defaultCohort is what a nil Options.Cohort means.
var defaultCohort = Cohort{Passes: 64, For: 100 * time.Millisecond}

// most passes in a row; 0 switches passing off.
func (c Cohort) most() int {
	if c.Passes <= 0 || c.For <= 0 {
		return 0
	}
	return min(c.Passes, store.MaxSpare)
}

// bounds returns what c comes to.
func (c Cohort) bounds() waitq.Cohort {
	return waitq.Cohort{MostPasses: c.Passes, For: c.For, MostTokens: c.most()}
}
