//go:build !unix

package conn

import (
	"errors"
	"net"
)

// direct is not supported on this platform.
type direct struct{}

func newDirect(net.Conn) *direct { return nil }

func (*direct) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

func (*direct) ReadNow([]byte) (int, bool, error) { return 0, false, errors.ErrUnsupported }

func (*direct) WriteNow([]byte) (int, error) { return 0, errors.ErrUnsupported }
