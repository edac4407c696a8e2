package redisstore

import (
	"fmt"
	"net"
	"strconv"
)

// slotRange is a range of slots, with the address of the master that has them.
type slotRange struct {
	first, last int
	host        string
}

// parseSlotMap reads the reply to CLUSTER SLOTS. The argument asked is the address of the
// member that sent it, which may not know its own name. Slots without a master are left
// out.
func parseSlotMap(v value, asked string) ([]slotRange, error) {
	if v.kind == '-' {
		return nil, newRefused(v)
	}
	if v.kind != '*' || len(v.list) == 0 {
		return nil, fmt.Errorf("%w: %s reports that no server has any slot", errNoSlotMap, asked)
	}
	var slotMap []slotRange
	for _, some := range v.list {
		if len(some.list) < 3 || len(some.list[2].list) < 2 {
			return nil, notUnderstood(v)
		}
		first, last, master := some.list[0], some.list[1], some.list[2].list
		if first.kind != ':' || last.kind != ':' || first.num < 0 || last.num < first.num || last.num >= slots {
			return nil, notUnderstood(v)
		}
		host, ok := memberHost(string(master[0].text), strconv.FormatInt(master[1].num, 10), asked)
		if !ok {
			continue
		}
		slotMap = append(slotMap, slotRange{int(first.num), int(last.num), host})
	}
	return slotMap, nil
}

// memberHost returns the address of a member as reported by another. An empty host means
// the member that was asked.
func memberHost(host, port, asked string) (string, bool) {
	if host == "" {
		host, _, _ = net.SplitHostPort(asked)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || host == "?" {
		return "", false
	}
	return net.JoinHostPort(host, port), true
}
