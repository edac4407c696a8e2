package cluster

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Range is a range of slots, with the address of the master that has them.
type Range struct {
	First, Last int
	Host        string
}

// ParseSlotMap reads the reply to CLUSTER SLOTS. The argument asked is the address of the
// member that sent it, which may not know its own name. Slots without a master are left
// out.
func ParseSlotMap(v resp.Value, asked string) ([]Range, error) {
	if v.Kind == '-' {
		return nil, resp.ErrorOf(v)
	}
	if v.Kind != '*' || len(v.List) == 0 {
		return nil, fmt.Errorf("%w: %s reports that no server has any slot", ErrNoSlotMap, asked)
	}
	var slotMap []Range
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
		slotMap = append(slotMap, Range{int(first.Num), int(last.Num), host})
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

// ParseEpoch reads the epoch of the cluster in the reply to CLUSTER INFO; 0 if it is not there. The
// epoch rises when a replica takes over, and when a slot comes to a member whose own epoch is not
// the highest. So it is higher after a slot has moved away and back.
func ParseEpoch(v resp.Value) uint64 {
	_, after, _ := strings.Cut(string(v.Text), "cluster_current_epoch:")
	digits, _, _ := strings.Cut(after, "\r\n")
	epoch, _ := strconv.ParseUint(digits, 10, 64)
	return epoch
}

// SlotsCommand is the command whose reply ParseSlotMap reads, and InfoCommand that of ParseEpoch.
var SlotsCommand, InfoCommand = resp.Command("CLUSTER", "SLOTS"), resp.Command("CLUSTER", "INFO")

// Fetch asks the member at a for the slot map, over a new connection.
func Fetch(ctx context.Context, a config.Address, c *config.Config) ([]Range, error) {
	l, said, err := conn.Login(ctx, a, c, SlotsCommand)
	if err != nil {
		return nil, err
	}
	l.Conn.Close()
	return ParseSlotMap(said[0], a.Host)
}

// ErrNoSlotMap is why a member cannot be asked for the slot map.
var ErrNoSlotMap = script.NewUnusable("the cluster does not report its slot map")

// MemberOf returns the address that a redirection names. The argument asked is the
// address of the member that sent it.
func MemberOf(d *resp.Redirection, asked string) (string, bool) {
	at := strings.LastIndex(d.Host, ":")
	if at < 0 {
		return "", false
	}
	return memberHost(strings.Trim(d.Host[:at], "[]"), d.Host[at+1:], asked)
}
