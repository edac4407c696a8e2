package redis

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/majority"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// answer reads the reply to one of the scripts that change something. With
// draws, a yes without a token is none: a grant of token 0 would pass for older
// than all others.
func (r reply) answer(draws bool) majority.Answer {
	if r.outcome != store.Granted {
		// An error reply did nothing and says nothing of the lease, which may be
		// there all the same: no more than if the command had never left.
		kind := quorum.Unsent
		switch {
		case r.sent:
			kind = quorum.Unknown
		case r.outcome == store.WrongType:
			kind = quorum.No
		}
		return majority.Answer{Kind: kind, Said: store.NodeOutcome{Outcome: r.outcome, Err: r.err}}
	}
	words, err := r.words()
	if err == nil {
		switch words[0] {
		case "1":
			a := majority.Answer{Kind: quorum.Yes, Said: store.NodeOutcome{Outcome: store.Granted}}
			if draws && len(words) > 1 {
				a.Token, err = strconv.ParseUint(words[1], 10, 64)
			}
			if err == nil && (a.Token > 0 || !draws) {
				return a
			}
		case "2":
			return majority.Answer{Kind: quorum.No, Said: store.NodeOutcome{Outcome: store.Refused, Err: errReleasedOwner}}
		case "0":
			if len(words) >= 3 {
				a := majority.Answer{Kind: quorum.No, Said: takenBy(words[1], words[2])}
				if a.Said.Outcome == store.Absent {
					a.Kind = quorum.Absent
				}
				return a
			}
		}
	}
	// It ran, so whatever it says, it may have done what was asked.
	return majority.Answer{Kind: quorum.Unknown, Said: store.NodeOutcome{Outcome: store.Refused, Err: notUnderstood(words)}}
}

func notUnderstood(words []string) error { return fmt.Errorf("answer not understood: %.80q", words) }

// takenBy reads the value of a lock's key and what PTTL said of it.
func takenBy(value, pttl string) store.NodeOutcome {
	ms, err := strconv.ParseInt(pttl, 10, 64)
	if value == "" || err != nil || ms == -2 {
		return store.NodeOutcome{Outcome: store.Absent}
	}
	if ms == 0 { // less than a millisecond is left, not nothing
		ms = 1
	}
	ms = min(ms, math.MaxInt64/int64(time.Millisecond)) // a stranger's key can last for longer
	return store.NodeOutcome{Outcome: store.Taken, Holder: decodeValue(value), ExpiresIn: time.Duration(ms) * time.Millisecond}
}

// words are the elements of a script's answer, at least one.
func (r reply) words() ([]string, error) {
	list, err := r.msg.ToArray()
	if err == nil && len(list) == 0 {
		err = errors.New("empty answer")
	}
	words := make([]string, len(list))
	for i := range list {
		if n, e := list[i].AsInt64(); e == nil && list[i].IsInt64() {
			words[i] = strconv.FormatInt(n, 10)
		} else if words[i], e = list[i].ToString(); e != nil {
			err = e
		}
	}
	return words, err
}

var errReleasedOwner = errors.New("this owner was already released")
