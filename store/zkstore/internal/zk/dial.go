package zk

import (
	"context"
	"math/rand/v2"
	"net"
)

// lookup returns the addresses of a host. Tests replace it.
var lookup = net.DefaultResolver.LookupHost

// dial connects to one of the addresses of a server, which it tries in any order: behind the first
// one there may be a member that serves nobody.
func dial(ctx context.Context, server string) (c net.Conn, err error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	addrs, err := lookup(ctx, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err} // as package net does
	}
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	for _, a := range addrs {
		if c, err = (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(a, port)); err == nil {
			return c, nil
		}
	}
	return nil, err
}
