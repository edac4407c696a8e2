package script

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// OtherMembership returns the outcome of a node that belongs to another membership.
func OtherMembership(list resp.Value) store.NodeOutcome {
	return store.NodeOutcome{Outcome: store.Refused, Err: &MembershipError{List: string(list.Text)}}
}

// MembershipError is why a node that belongs to other servers is not used.
type MembershipError struct {
	List string // the membership in its mark
	// Ours is the membership of this client if that has replaced List, which this node missed.
	Ours string
}

func (e *MembershipError) Error() string {
	now, next, both := strings.Cut(e.List, ">")
	if e.Ours != "" {
		return fmt.Sprintf("it missed that %q replaced %q: run leasehold replace again, with --store 'redis://%s?next=%s' and your other settings, or call redisadmin.Replace", e.Ours, now, now, e.Ours)
	}
	theirs := "others"
	if both { // quoted, since it may contain anything
		theirs = fmt.Sprintf("%q, which are being replaced by %q", now, next)
	} else if now != "" {
		theirs = strconv.Quote(now)
	}
	return fmt.Sprintf("this client is configured with other servers: it belongs to %s: configure all clients with the same servers, or with both memberships (next=) while one replaces the other; if it was down when they were replaced, run leasehold replace again; if no client uses the other servers any more, run leasehold bootstrap", theirs)
}

// QuarantinedOr returns the outcome of a node whose quarantine lasts for another left
// microseconds, or otherwise if the quarantine is over.
func QuarantinedOr(left, why resp.Value, otherwise store.NodeOutcome) store.NodeOutcome {
	us, ok := left.Number()
	if !ok || us == 0 {
		return otherwise
	}
	d := time.Duration(min(us, 1<<50)) * time.Microsecond
	return store.NodeOutcome{Outcome: store.Quarantined, ExpiresIn: d, Err: &QuarantineError{string(why.Text), d}}
}

// OtherVersion returns the outcome of a node whose mark has an unknown version.
func OtherVersion(version resp.Value) store.NodeOutcome {
	return store.NodeOutcome{Outcome: store.Refused, Err: &nodemark.VersionError{Version: string(version.Text)}}
}

// QuarantineError is why a node grants nothing for now.
type QuarantineError struct {
	Why  string // as in the mark
	Left time.Duration
}

func (e *QuarantineError) Error() string {
	return fmt.Sprintf("%s; it takes part again in %v", ReasonOf(e.Why), store.Round(e.Left))
}

// ReasonOf describes the reason that a mark gives for a quarantine.
func ReasonOf(why string) string {
	switch why {
	case "empty":
		return "it is new or was emptied, and may have forgotten leases"
	case "emptied":
		return "it was emptied or has evicted keys, and may have forgotten leases"
	case "restarted":
		return "it was restarted, and may have forgotten leases"
	case "replaced":
		return "its data was replaced by that of another server, and may lack leases"
	case "returned":
		return "another server was at its address meanwhile, whose leases it may lack"
	case "behind":
		return "it has lost a lock that this client was granted, and may have forgotten leases"
	}
	return "it may have forgotten leases (" + strconv.Quote(why) + ")"
}
