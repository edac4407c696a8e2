package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// redirection is what a member of a cluster says instead of doing what it was asked:
// that it does not have the slot, or not all of it yet, or any more. Nothing was done.
type redirection struct {
	kind redirectionKind
	host string // host:port, of moved and moving; without the host where it is its own
	slot int    // of moved and moving
	said string
	why  string
}

type redirectionKind uint8

const (
	moved     redirectionKind = iota // another has the slot
	moving                           // another is about to have it, and has this key already
	unsettled                        // it is being given to another just now, or nobody has it
)

func (d *redirection) Error() string { return fmt.Sprintf("%s (%s)", d.said, d.why) }

var (
	errUncharted = errors.New("the cluster does not say who has which slot")
	errUnserved  = errors.New("no server of the cluster has the slot of this lock at present")
	errRetired   = errors.New("the server is no master of the cluster any more")
	errUnheard   = errors.New("the slot of the channel was given to another server")
	errNotTuned  = errors.New("the server has got slots since the connection was made")
)

// readRedirection reads an error reply; nil: it is another.
func readRedirection(reply string) *redirection {
	d := &redirection{said: store.Excerpt(reply)}
	word, rest, _ := strings.Cut(reply, " ")
	switch word {
	case "MOVED", "ASK":
		slot, host, ok := strings.Cut(rest, " ")
		n, err := strconv.Atoi(slot)
		if !ok || err != nil || n < 0 || n >= slots || strings.Contains(host, " ") {
			return nil
		}
		d.slot, d.host = n, host
		if d.kind = moving; word == "MOVED" {
			d.kind, d.why = moved, "the server is part of a cluster, which does not work as a node: give the store as redis-cluster://, or use independent servers"
		} else {
			d.why = "the cluster gives the lock's slot to another server"
		}
		return d
	case "TRYAGAIN":
		d.kind, d.why = unsettled, "the cluster gives the lock's slot to another server"
		return d
	case "CLUSTERDOWN":
		d.kind, d.why = unsettled, "the server's cluster is down"
		return d
	}
	// A script has come to a key that was just given away, and could not go on: this one
	// was not named before it began.
	if strings.Contains(reply, "Script attempted to access a non local key") {
		d.kind, d.why = unsettled, "the cluster gives the lock's slot to another server"
		return d
	}
	return nil
}

// outcome is how it is judged where nobody is there to follow it.
func (d *redirection) outcome() store.Outcome {
	if d.kind == moved {
		return store.Refused
	}
	return store.Unsettled
}

// member is the address that it leads to; asked is that of who said so.
func (d *redirection) member(asked string) (string, bool) {
	at := strings.LastIndex(d.host, ":")
	if at < 0 {
		return "", false
	}
	return memberHost(strings.Trim(d.host[:at], "[]"), d.host[at+1:], asked)
}
