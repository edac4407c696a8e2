package resp

import (
	"bytes"
	"errors"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/excerpt"
)

// Error is an error reply.
type Error struct{ text string }

// ErrorOf returns the error of v, which is an error reply.
func ErrorOf(v Value) *Error { return &Error{string(v.Text)} }

// NotUp returns the error reply of a server that is reading its data. Some commands succeed
// on such a server, and INFO then says that it is not up.
func NotUp() *Error { return &Error{"LOADING the server is not up yet"} }

// Error returns an excerpt of the reply.
func (e *Error) Error() string { return excerpt.Of(e.text) }

// Text is the whole reply. It can have any size and contain anything.
func (e *Error) Text() string { return e.text }

// Code says what the reply means.
func (e *Error) Code() Code { return codeOf(e.text) }

// Code says what v means if it is an error reply; for all other values it is NoError.
func (v Value) Code() Code {
	if v.Kind != '-' {
		return NoError
	}
	return codeOf(string(v.Text))
}

// DeniesCommand reports whether v refuses a command as such, and not a key or a channel.
func (v Value) DeniesCommand() bool {
	return v.Code() == Denied && bytes.Contains(v.Text, []byte("to run"))
}

// CodeOf returns the code of the error reply that err wraps; NoError if there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code()
	}
	return NoError
}

// Code is the meaning of an error reply.
type Code uint8

// The codes.
const (
	NoError        Code = iota
	OtherError          // an error reply with a meaning that no client needs to know
	Moved               // another member of the cluster has the slot
	Ask                 // another member of the cluster is taking the slot over, and has the key
	TryAgain            // the slot is moving
	ClusterDown         // nobody has the slot
	KeyMoved            // a script accessed a key that has just moved away
	NoScript            // the server does not know the script of this hash
	WrongType           // the key holds another type
	Loading             // the server is still reading its data
	WrongPassword       // the user name or the password is wrong
	NoAuth              // the server requires a password
	Denied              // the user lacks a permission
	OutOfMemory         // the server has reached its limit of memory
	ReadOnly            // the server is a replica
	CannotSave          // the server refuses writes because it cannot save its data
	TooFewReplicas      // the server refuses writes because too few replicas follow it
	MasterDown          // the server is a replica that lost its master
	NoCluster           // the server is not in a cluster
	Busy                // another client's script blocks the server
	UnknownCommand      // the server does not have the command
	NoPassword          // AUTH was sent, but the user has no password
	Protected           // without a password, the server serves only its own machine
	TooManyClients      // the server has no room for another connection
)

// codes maps the text of error replies to their codes. Older servers put other words
// before the code of an error inside a script, so most codes may be anywhere in a reply.
// Only a code that decides whether to send a command again has to be at the beginning.
var codes = []struct {
	text    string
	code    Code
	atBegin bool
}{
	{"MOVED ", Moved, true},
	{"ASK ", Ask, true},
	{"TRYAGAIN", TryAgain, true},
	{"CLUSTERDOWN", ClusterDown, true},
	{"NOSCRIPT", NoScript, true},
	{"Script attempted to access a non local key", KeyMoved, false},
	{"WRONGTYPE", WrongType, false},
	{"LOADING", Loading, false},
	{"WRONGPASS", WrongPassword, false},
	{"NOAUTH", NoAuth, false},
	{"NOPERM", Denied, false},
	{"The user executing the script can't", Denied, false}, // older servers, inside scripts
	{"OOM", OutOfMemory, false},
	{"READONLY", ReadOnly, false},
	{"MISCONF", CannotSave, false},
	{"NOREPLICAS", TooFewReplicas, false},
	{"MASTERDOWN", MasterDown, false},
	{"cluster support disabled", NoCluster, false},
	{"BUSY", Busy, false},
	{"ERR unknown command", UnknownCommand, true},
	{"ERR AUTH", NoPassword, true},
	{"DENIED", Protected, true},
	{"ERR max number of clients", TooManyClients, true},
}

func codeOf(reply string) Code {
	for _, k := range codes {
		if at := strings.Index(reply, k.text); at == 0 || at > 0 && !k.atBegin {
			return k.code
		}
	}
	return OtherError
}
