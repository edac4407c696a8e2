package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
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
func readRedirection(reply *resp.Error) *redirection {
	d := &redirection{said: reply.Error()}
	switch reply.Code() {
	case resp.Moved:
		d.kind, d.why = moved, "the server is part of a cluster, which cannot be a node: use a redis-cluster:// URL, or independent servers"
	case resp.Ask:
		d.kind, d.why = moving, "the lock's slot is moving to another server"
	case resp.TryAgain, resp.KeyMoved: // KeyMoved: the script could not go on, since the key was not declared
		d.kind, d.why = unsettled, "the lock's slot is moving to another server"
		return d
	case resp.ClusterDown:
		d.kind, d.why = unsettled, "the server's cluster is down"
		return d
	default:
		return nil
	}
	words := strings.Split(reply.Text(), " ")
	if len(words) != 3 {
		return nil
	}
	var err error
	if d.slot, err = strconv.Atoi(words[1]); err != nil || d.slot < 0 || d.slot >= slots {
		return nil
	}
	d.host = words[2]
	return d
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
