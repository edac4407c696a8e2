// Package storetest is the suite every store.Store passes: the contract of
// package store, as tests. A store that fails it keeps no locks, whatever else
// it does well. One that is a store.Waiter or a
// store.Returner is held to what that promises, too.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, open, storetest.Options{Second: join})
//	}
//
// Leaks of goroutines are for the caller to look for, after Run has returned
// and its stores are closed.
package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Options fit the suite to a store. The zero value is right for a store that
// only one handle can reach.
type Options struct {
	// MinTTL is a TTL short enough to wait for its end in a test, and long
	// enough for the store to get a few requests done in it. Zero: 150 ms.
	MinTTL time.Duration
	// Resolution is what the store rounds TTLs up to. Zero: 1 ms.
	Resolution time.Duration
	// Second opens another, independent handle (connection, client) to the
	// locks of the store that open returned last. With it, every contest is
	// between two handles. Leave it nil where there is no such thing.
	Second func(t *testing.T) store.Store
}

// Run runs the suite as subtests of t. open returns a store without locks, or
// at least without any whose name starts with "storetest/"; it is called a few
// times, each with the test or subtest whose end is the store's. Run closes
// what it opened; cleaning up beyond that (servers, files) is for open to leave
// to t.Cleanup.
//
// It takes a few seconds, most of them spent on waiting for leases to expire.
func Run(t *testing.T, open func(t *testing.T) store.Store, o Options) {
	pair := func(t *testing.T) (first, second store.Store) {
		first = open(t)
		t.Cleanup(func() { first.Close() })
		if o.Second != nil {
			second = o.Second(t)
			t.Cleanup(func() { second.Close() })
		}
		return first, second
	}
	first, second := pair(t)
	for _, c := range checksOf(first) {
		t.Run(c.name, func(t *testing.T) {
			c.run(newTrial(t, subject{
				first:    first,
				second:   second,
				reopen:   func() (first, second store.Store) { return pair(t) },
				options:  o,
				patience: 20 * time.Second,
			}))
		})
	}
}

// check is one promise of the contract.
type check struct {
	name string
	run  func(t *trial)
}

// checksOf are those that s has to pass.
func checksOf(s store.Store) []check {
	all := checks
	if _, ok := s.(store.Waiter); ok {
		all = slices.Concat(all, waitChecks)
	}
	if _, ok := s.(store.Returner); ok {
		all = slices.Concat(all, returnChecks)
	}
	return all
}

// checks are those for every store. They share one store and never a lock's name.
var checks = []check{
	{"Caps", checkCaps},
	{"Grant", checkGrant},
	{"Busy", checkBusy},
	{"Repeat", checkRepeat},
	{"TokensRise", checkTokensRise},
	{"ReleaseByOwnerOnly", checkReleaseByOwnerOnly},
	{"ReleaseTwice", checkReleaseTwice},
	{"RenewExtends", checkRenewExtends},
	{"RenewNeverShrinks", checkRenewNeverShrinks},
	{"RenewNeverCreates", checkRenewNeverCreates},
	{"RenewByOwnerOnly", checkRenewByOwnerOnly},
	{"RenewBatch", checkRenewBatch},
	{"Expiry", checkExpiry},
	{"ExpiryCountsDown", checkExpiryCountsDown},
	{"ExpiredHolder", checkExpiredHolder},
	{"Inspect", checkInspect},
	{"List", checkList},
	{"ListPrefix", checkListPrefix},
	{"NamesOfAnyBytes", checkNamesOfAnyBytes},
	{"NamesAlike", checkNamesAlike},
	{"OwnersAlike", checkOwnersAlike},
	{"Meta", checkMeta},
	{"InvalidAcquire", checkInvalidAcquire},
	{"InvalidOthers", checkInvalidOthers},
	{"LongestTTL", checkLongestTTL},
	{"EndedContext", checkEndedContext},
	{"EndedContextIsNoLoss", checkEndedContextIsNoLoss},
	{"CancelledMidway", checkCancelledMidway},
	{"OneWinner", checkOneWinner},
	{"MutualExclusion", checkMutualExclusion},
	{"Close", checkClose},
	{"CloseKeepsLeases", checkCloseKeepsLeases},
	{"CloseDuringCalls", checkCloseDuringCalls},
}

// waitChecks are those for a store.Waiter.
var waitChecks = []check{
	{"WaitFree", checkWaitFree},
	{"WaitInOrder", checkWaitInOrder},
	{"WaitAndTry", checkWaitAndTry},
	{"WaitGivenUp", checkWaitGivenUp},
	{"WaitGivenUpByAll", checkWaitGivenUpByAll},
	{"WaitReleased", checkWaitReleased},
	{"WaitForExpiry", checkWaitForExpiry},
	{"WaitTold", checkWaitTold},
	{"WaitBarge", checkWaitBarge},
	{"WaitShown", checkWaitShown},
	{"WaitMany", checkWaitMany},
	{"WaitComeAndGo", checkWaitComeAndGo},
	{"WaitInvalid", checkWaitInvalid},
	{"WaitEndedContext", checkWaitEndedContext},
	{"WaitClosed", checkWaitClosed},
	{"SpareTokens", checkSpareTokens},
	{"Draw", checkDraw},
	{"DrawWaiting", checkDrawWaiting},
	{"DrawByOwnerOnly", checkDrawByOwnerOnly},
}

// returnChecks are those for a store.Returner.
var returnChecks = []check{
	{"Return", checkReturn},
	{"ReturnFree", checkReturnFree},
	{"ReturnGivenUp", checkReturnGivenUp},
	{"ReturnGranted", checkReturnGranted},
	{"ReturnByOwnerOnly", checkReturnByOwnerOnly},
	{"ReturnInvalid", checkReturnInvalid},
	{"ReturnClosed", checkReturnClosed},
}
