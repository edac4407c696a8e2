package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// redirection is a cluster member's refusal of a command because it does not have the
// slot, or only a part of it. The command was not executed.
type redirection struct {
	kind redirectionKind
	host string // host:port, of moved and moving; an empty host is the member's own
	slot int    // of moved and moving
	said string
	why  string
}

type redirectionKind uint8

const (
	moved     redirectionKind = iota // another member has the slot
	moving                           // another member is taking the slot over and already has this key
	unsettled                        // the slot is moving just now, or nobody has it
)

func (d *redirection) Error() string { return fmt.Sprintf("%s (%s)", d.said, d.why) }

var (
	errNoSlotMap    = errors.New("the cluster does not report its slot map")
	errUnserved     = errors.New("no server of the cluster serves the slot of this lock at present")
	errRetired      = errors.New("the server is not a master of the cluster any more")
	errChannelMoved = errors.New("the slot of the channel has moved to another server")
	errNoChannel    = errors.New("the server was given slots after the connection was made")
)

// readRedirection reads an error reply; nil if it is not a redirection.
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
			d.kind, d.why = moved, "the server is part of a cluster, which cannot be a node: use a redis-cluster:// URL, or independent servers"
		} else {
			d.why = "the lock's slot is moving to another server"
		}
		return d
	case "TRYAGAIN":
		d.kind, d.why = unsettled, "the lock's slot is moving to another server"
		return d
	case "CLUSTERDOWN":
		d.kind, d.why = unsettled, "the server's cluster is down"
		return d
	}
	// A script has accessed a key that just moved away, and could not go on: the key was
	// not declared.
	if strings.Contains(reply, "Script attempted to access a non local key") {
		d.kind, d.why = unsettled, "the lock's slot is moving to another server"
		return d
	}
	return nil
}

// outcome is the outcome of a redirection that is not followed.
func (d *redirection) outcome() store.Outcome {
	if d.kind == moved {
		return store.Refused
	}
	return store.Unsettled
}

// member returns the address that the redirection names. The argument asked is the
// address of the member that sent it.
func (d *redirection) member(asked string) (string, bool) {
	at := strings.LastIndex(d.host, ":")
	if at < 0 {
		return "", false
	}
	return memberHost(strings.Trim(d.host[:at], "[]"), d.host[at+1:], asked)
}
