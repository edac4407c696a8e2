package store

import (
	"net"
	"os"

	"github.com/leasehold-dev/leasehold/internal/excerpt"
)

const (
	mostShown  = 80  // bytes of each part of a Holder
	mostQuoted = 300 // bytes of a lock's name in an error
)

// Excerpt returns text from a server, or from another kind of client, in a form
// fit for an error or a log: one short line that is safe on a terminal. Text of
// more than 300 bytes is cut, and text with non-graphic characters is quoted.
// Stores apply it to every server message that they put into an error.
func Excerpt(text string) string { return excerpt.Of(text) }

// Cause returns why a connection could not be made or broke, without what package net writes around it: the
// address, which errors of stores begin with. Other errors it returns as they are.
func Cause(err error) error {
	if op, ok := err.(*net.OpError); ok && op.Err != nil {
		err = op.Err
	}
	switch e := err.(type) {
	case *os.SyscallError:
		return e.Err
	case *net.DNSError:
		return &unresolved{e}
	}
	return err
}

// unresolved is the error of a name without an address. Its text leaves out the name server.
type unresolved struct{ *net.DNSError }

func (e *unresolved) Error() string { return e.Err }
func (e *unresolved) Unwrap() error { return e.DNSError }
