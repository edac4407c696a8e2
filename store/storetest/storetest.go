// Package storetest tests that a store keeps the contract of store.Store. Every
// engine must pass it. The suite reads from Caps what a store may decide, such as its
// shortest TTL, and what it does not offer.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, open, storetest.Options{Second: join})
//	}
//
// The suite does not look for leaked goroutines. The caller does that after Run
// has returned, when all stores are closed.
package storetest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Run runs the suite as subtests of t. It calls open a few times. open returns a
// store in which no lock has a name that starts with "storetest/"; the t it is
// given ends when the store is no longer used. Run closes every store it opened.
// open registers any further clean-up (servers, files) with t.Cleanup.
//
// Run blocks for a few seconds, most of them spent waiting for leases to expire. In
// virtual time it only computes.
func Run(t *testing.T, open func(t *testing.T) *store.Store, o Options) {
	pair := func(t *testing.T) (first, second *store.Store) {
		first = open(t)
		t.Cleanup(func() { first.Close() })
		if o.Second != nil {
			second = o.Second(t)
			t.Cleanup(func() { second.Close() })
		}
		return first, second
	}
	runOn := func(t *testing.T, c check, first, second *store.Store) {
		c.run(newTrial(t, subject{
			first:    first,
			second:   second,
			reopen:   func() (first, second *store.Store) { return pair(t) },
			options:  o,
			patience: 20 * time.Second,
		}))
	}
	if o.Virtual {
		var checks []check
		synctest.Test(t, func(t *testing.T) {
			first, _ := pair(t)
			checks = checksOf(first)
		})
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first, second := pair(t)
					runOn(t, c, first, second)
				})
			})
		}
		return
	}
	first, second := pair(t)
	for _, c := range checksOf(first) {
		t.Run(c.name, func(t *testing.T) { runOn(t, c, first, second) })
	}
}

// check tests one promise of the contract.
type check struct {
	name string
	run  func(t *trial)
}

// checksOf returns the checks that s has to pass.
func checksOf(s *store.Store) []check {
	all, c := checks, s.Caps()
	if !c.NoQueue {
		all = slices.Concat(all, waitChecks)
	}
	if !c.NoQueue && !c.MutexesOnly {
		all = slices.Concat(all, kindChecks)
	}
	if !c.NoBreaks {
		all = slices.Concat(all, breakChecks)
		if c.Notifies {
			all = slices.Concat(all, notifyChecks)
		}
		if !c.NoQueue && !c.MutexesOnly {
			all = slices.Concat(all, breakKindChecks)
		}
	}
	if !c.MutexesOnly {
		all = slices.Concat(all, changeChecks)
	}
	if c.Rejoins {
		all = slices.Concat(all, rejoinChecks)
	}
	return all
}

// checks are the checks for every store. They share one store and use different
// lock names.
var checks = []check{
	{"Caps", checkCaps},
	{"Require", checkRequire},
	{"Grant", checkGrant},
	{"Busy", checkBusy},
	{"Repeat", checkRepeat},
	{"TokensRise", checkTokensRise},
	{"ReleaseByOwnerOnly", checkReleaseByOwnerOnly},
	{"ReleaseTwice", checkReleaseTwice},
	{"UndoSparesOthers", checkUndoSparesOthers},
	{"LateReleaseSparesOthers", checkLateReleaseSparesOthers},
	{"RenewExtends", checkRenewExtends},
	{"RenewNeverShrinks", checkRenewNeverShrinks},
	{"RenewNeverCreates", checkRenewNeverCreates},
	{"RenewByOwnerOnly", checkRenewByOwnerOnly},
	{"RenewBatch", checkRenewBatch},
	{"JoinDuringRenewal", checkJoinDuringRenewal},
	{"Beside", checkBeside},
	{"Expiry", checkExpiry},
	{"TTLs", checkTTLs},
	{"ExpiryCountsDown", checkExpiryCountsDown},
	{"ExpiredHolder", checkExpiredHolder},
	{"Inspect", checkInspect},
	{"List", checkList},
	{"ListPrefix", checkListPrefix},
	{"NamesOfAnyBytes", checkNamesOfAnyBytes},
	{"NamesAlike", checkNamesAlike},
	{"OwnersAlike", checkOwnersAlike},
	{"Meta", checkMeta},
	{"LongestTTL", checkLongestTTL},
	{"CancelledMidway", checkCancelledMidway},
	{"CancelledAttemptSparesOthers", checkCancelledAttemptSparesOthers},
	{"OneWinner", checkOneWinner},
	{"MutualExclusion", checkMutualExclusion},
	{"ReleaseIsOneStep", checkReleaseIsOneStep},
	{"RenewIsOneStep", checkRenewIsOneStep},
	{"Crowd", checkCrowd},
	{"Close", checkClose},
	{"CloseKeepsLeases", checkCloseKeepsLeases},
	{"CloseDuringCalls", checkCloseDuringCalls},
}

// waitChecks are the further checks for a store with a queue.
var waitChecks = []check{
	{"WaitFree", checkWaitFree},
	{"WaitInOrder", checkWaitInOrder},
	{"WaitAndTry", checkWaitAndTry},
	{"WaitGivenUp", checkWaitGivenUp},
	{"WaitGivenUpByAll", checkWaitGivenUpByAll},
	{"WaitReleased", checkWaitReleased},
	{"WaitForExpiry", checkWaitForExpiry},
	{"WaitKeepsItsPlace", checkWaitKeepsItsPlace},
	{"WaitSince", checkWaitSince},
	{"WaitReasons", checkWaitReasons},
	{"WaitShown", checkWaitShown},
	{"WaitHeldFor", checkHeldFor},
	{"WaitMany", checkWaitMany},
	{"WaitComeAndGo", checkWaitComeAndGo},
	{"WaitEndedContext", checkWaitEndedContext},
	{"WaitClosed", checkWaitClosed},
}

// kindChecks are the further checks for a store that keeps every kind.
var kindChecks = []check{
	{"KindLimit", checkKindLimit},
	{"KindContention", checkKindContention},
	{"KindWeights", checkKindWeights},
	{"KindTokens", checkKindTokens},
	{"KindReadWrite", checkKindReadWrite},
	{"KindWriterWaits", checkKindWriterWaits},
	{"KindDeadReader", checkKindDeadReader},
	{"KindMismatch", checkKindMismatch},
}

// breakChecks are the further checks for a store whose leases can be broken.
var breakChecks = []check{
	{"BreakStopsRenewals", checkBreakStopsRenewals},
	{"BreakExpiry", checkBreakExpiry},
	{"BreakNow", checkBreakNow},
	{"BreakToken", checkBreakToken},
	{"BreakNote", checkBreakNote},
}

// notifyChecks are the further checks for a store that pushes broken leases.
var notifyChecks = []check{
	{"BreakNotified", checkBreakNotified},
}

// breakKindChecks are the further checks for a store that keeps every kind.
var breakKindChecks = []check{
	{"BreakOfKinds", checkBreakOfKinds},
}

// changeChecks are the further checks for a store that keeps every kind.
var changeChecks = []check{
	{"Downgrade", checkDowngrade},
	{"Resize", checkResize},
}

// rejoinChecks are the further checks for a store in which a release can rejoin the queue.
var rejoinChecks = []check{
	{"Rejoin", checkRejoin},
	{"RejoinFree", checkRejoinFree},
	{"RejoinGivenUp", checkRejoinGivenUp},
	{"RejoinGranted", checkRejoinGranted},
	{"RejoinByOwnerOnly", checkRejoinByOwnerOnly},
	{"RejoinClosed", checkRejoinClosed},
}
