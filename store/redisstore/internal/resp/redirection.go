package resp

import (
	"strconv"
	"strings"
)

// Slots is the number of slots of every cluster.
const Slots = 16384

// Redirection is a cluster member's refusal of a command because it does not have the
// slot, or only a part of it. The command was not executed.
type Redirection struct {
	Kind RedirectionKind
	Host string // host:port, of the first two kinds; an empty host is the member's own
	Slot int    // of the first two kinds
	said *Error
}

// RedirectionKind is what a member asks for.
type RedirectionKind uint8

// The kinds of redirections.
const (
	RedirectMoved RedirectionKind = iota // another member has the slot
	RedirectAsk                          // another member is taking the slot over and already has this key
	RedirectWait                         // the slot is moving just now, or nobody has it
)

func (d *Redirection) Error() string { return d.said.Error() }

// Unwrap returns the error reply.
func (d *Redirection) Unwrap() error { return d.said }

// RedirectionOf reads an error reply; nil if it is not a redirection.
func RedirectionOf(reply *Error) *Redirection {
	d := &Redirection{said: reply}
	switch reply.Code() {
	case Moved:
		d.Kind = RedirectMoved
	case Ask:
		d.Kind = RedirectAsk
	case TryAgain, KeyMoved, ClusterDown: // KeyMoved: the script could not go on, since the key was not declared
		d.Kind = RedirectWait
		return d
	default:
		return nil
	}
	words := strings.Split(reply.Text(), " ")
	if len(words) != 3 {
		return nil
	}
	var err error
	if d.Slot, err = strconv.Atoi(words[1]); err != nil || d.Slot < 0 || d.Slot >= Slots {
		return nil
	}
	d.Host = words[2]
	return d
}
