package redisstore

import (
	"fmt"
	"net"
	"strconv"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// slotRange is a range of slots, with the address of the master that has them.
type slotRange struct {
	first, last int
	host        string
}

// parseSlotMap reads the reply to CLUSTER SLOTS. The argument asked is the address of the
// member that sent it, which may not know its own name. Slots without a master are left
// out.
func parseSlotMap(v resp.Value, asked string) ([]slotRange, error) {
	if v.Kind == '-' {
		return nil, resp.ErrorOf(v)
	}
	if v.Kind != '*' || len(v.List) == 0 {
		return nil, fmt.Errorf("%w: %s reports that no server has any slot", errNoSlotMap, asked)
	}
	var slotMap []slotRange
	for _, some := range v.List {
		if len(some.List) < 3 || len(some.List[2].List) < 2 {
			return nil, resp.Unexpected(v)
		}
		first, last, master := some.List[0], some.List[1], some.List[2].List
		if first.Kind != ':' || last.Kind != ':' || first.Num < 0 || last.Num < first.Num || last.Num >= resp.Slots {
			return nil, resp.Unexpected(v)
		}
		host, ok := memberHost(string(master[0].Text), strconv.FormatInt(master[1].Num, 10), asked)
		if !ok {
			continue
		}
		slotMap = append(slotMap, slotRange{int(first.Num), int(last.Num), host})
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
