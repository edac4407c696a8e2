//go:build !unix

package redis

import "net"

// direct is not to be had: here one can not write to a connection without waiting.
type direct struct{}

func newDirect(net.Conn) *direct { return nil }

func (*direct) write([]byte) (int, error) {
	panic("leasehold: there is no way to write without waiting")
}
