package redis

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// verdict is what an answer means to a machine.
type verdict struct {
	kind  quorum.Kind
	token uint64
}

// verdict reads the answer to one of the scripts.
func (a answer) verdict() (verdict, store.NodeOutcome) {
	if a.outcome != store.Granted {
		kind := quorum.Unsent
		switch {
		case a.sent:
			kind = quorum.Unknown
		case a.outcome != store.Unreachable && a.outcome != store.TimedOut:
			kind = quorum.No // the server answered, and did not do it
		}
		return verdict{kind: kind}, store.NodeOutcome{Outcome: a.outcome, Err: a.err}
	}
	words, err := a.words()
	if err == nil {
		switch words[0] {
		case "1":
			v := verdict{kind: quorum.Yes}
			if len(words) > 1 {
				v.token, err = strconv.ParseUint(words[1], 10, 64)
			}
			if err == nil {
				return v, store.NodeOutcome{Outcome: store.Granted}
			}
		case "2":
			return verdict{kind: quorum.No}, store.NodeOutcome{Outcome: store.Refused, Err: errReleasedOwner}
		case "0":
			if len(words) >= 3 {
				return verdict{kind: quorum.No}, takenBy(words[1], words[2])
			}
		}
	}
	// It ran, so whatever it says, it may have done what was asked.
	return verdict{kind: quorum.Unknown}, store.NodeOutcome{Outcome: store.Refused, Err: fmt.Errorf("answer not understood: %.80q", words)}
}

// takenBy reads the value of a lock's key and what PTTL said of it.
func takenBy(value, pttl string) store.NodeOutcome {
	ms, err := strconv.ParseInt(pttl, 10, 64)
	if value == "" || err != nil || ms == -2 {
		return store.NodeOutcome{Outcome: store.Absent}
	}
	if ms == 0 { // less than a millisecond is left, not nothing
		ms = 1
	}
	return store.NodeOutcome{Outcome: store.Taken, Holder: decodeValue(value), ExpiresIn: time.Duration(ms) * time.Millisecond}
}

// words are the elements of a script's answer, at least one.
func (a answer) words() ([]string, error) {
	list, err := a.msg.ToArray()
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
