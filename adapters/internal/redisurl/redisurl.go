// Package redisurl makes a URL for package redisstore out of the addresses that another
// client of Redis is configured with.
package redisurl

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// Of returns the URL of servers at those addresses, host:port each, without secrets. The
// scheme is that without TLS; secure selects TLS. As for net.Dial, an address without a
// host is on this machine. The error matches store.ErrInvalid if an address would be
// something else in the URL, such as several servers.
func Of(scheme string, secure bool, addrs []string, db int) (string, error) {
	if secure {
		scheme = "rediss" + strings.TrimPrefix(scheme, "redis")
	}
	var hosts []string
	for _, addr := range addrs {
		if strings.ContainsAny(addr, ",/?#@ \t\r\n") {
			return "", fmt.Errorf("%w: the address %q is not host:port", store.ErrInvalid, addr)
		}
		if strings.HasPrefix(addr, ":") {
			addr = "localhost" + addr
		}
		hosts = append(hosts, addr)
	}
	u := scheme + "://" + strings.Join(hosts, ",")
	if db != 0 {
		u += "/" + strconv.Itoa(db)
	}
	return u, nil
}

// OfSocket returns the URL of the server at a unix socket.
func OfSocket(path string, db int) string {
	u := url.URL{Scheme: "unix", Path: path, RawQuery: url.Values{"db": {strconv.Itoa(db)}}.Encode()}
	return u.String()
}
