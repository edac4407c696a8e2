package cluster

import (
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

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
