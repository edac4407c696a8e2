package tally

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// Way returns how a lease was obtained, in one word: from the "store" when it was asked, or
// by a "handoff" of another holder. It is "" for other kinds of events.
func Way(k leasehold.EventKind) string {
	switch k {
	case leasehold.Acquired:
		return "store"
	case leasehold.Handed:
		return "handoff"
	}
	return ""
}

// Ways are all words that Way returns.
func Ways() []string { return []string{"store", "handoff"} }

// Causes are all words that end a hold: those of Cause, without the grant that came too
// late, which nobody ever held.
func Causes() []string { return []string{"expired", "denied", "max_hold"} }

// Cause returns the cause of a loss in one word. It is "denied" if err is not a LostError.
func Cause(err error) string {
	var lost *leasehold.LostError
	if errors.As(err, &lost) {
		switch lost.Cause {
		case leasehold.LostExpired:
			return "expired"
		case leasehold.LostMaxHold:
			return "max_hold"
		case leasehold.LostLateGrant:
			return "late_grant"
		}
	}
	return "denied"
}

// reasons are the words for errors. The first that matches counts.
var reasons = []struct {
	err  error
	word string
}{
	{context.Canceled, "canceled"},
	{leasehold.ErrBusy, "busy"},
	{leasehold.ErrQuorum, "quorum"},
	{leasehold.ErrLost, "late_grant"},
	{context.DeadlineExceeded, "timeout"},
	{leasehold.ErrInvalid, "invalid"},
	{leasehold.ErrUnsupported, "unsupported"},
	{leasehold.ErrKindMismatch, "kind_mismatch"},
	{store.ErrClosed, "closed"},
}

// Reasons are all words that Reason returns.
func Reasons() []string {
	words := []string{noReason}
	for _, r := range reasons {
		words = append(words, r.word)
	}
	return words
}

// noReason is the word for errors of the store's engine.
const noReason = "store"

// Reason returns why a lock was not obtained, in one word.
func Reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	return noReason
}
