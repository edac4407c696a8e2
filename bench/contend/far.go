package contend

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/bench/resp"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
)

// Far is a set of proxies that make servers look distant.
type Far []*faultproxy.Proxy

// MoveAway puts a proxy in front of each address. The caller must call Close.
func MoveAway(addrs []string, roundTrip time.Duration) (Far, error) {
	var f Far
	for _, a := range addrs {
		p, err := faultproxy.Listen(a)
		if err != nil {
			f.Close()
			return nil, err
		}
		p.Delay(roundTrip / 2)
		f = append(f, p)
	}
	return f, nil
}

// Addrs returns the addresses for clients.
func (f Far) Addrs() []string {
	addrs := make([]string, len(f))
	for i, p := range f {
		addrs[i] = p.Addr()
	}
	return addrs
}

// Close ends the proxies.
func (f Far) Close() {
	for _, p := range f {
		p.Close()
	}
}

// RoundTrip measures the round trip to a Redis server: the median of some PINGs.
func RoundTrip(addr string) (time.Duration, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return 0, err
	}
	var took []time.Duration
	for r := bufio.NewReader(conn); len(took) < 21; {
		start := time.Now()
		if _, err := conn.Write(resp.AppendCommand(nil, "PING")); err != nil {
			return 0, err
		}
		if reply, err := resp.Read(r); err != nil || reply.Kind != resp.Status {
			return 0, fmt.Errorf("PING through a proxy: %q, %w", reply.Bytes, err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
