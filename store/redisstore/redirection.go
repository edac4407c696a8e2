package redisstore

import (
	"errors"
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

var (
	errNoSlotMap    = errors.New("the cluster does not report its slot map")
	errUnserved     = errors.New("no server of the cluster serves the slot of this lock at present")
	errRetired      = errors.New("the server is not a master of the cluster any more")
	errChannelMoved = errors.New("the slot of the channel has moved to another server")
	errNoChannel    = errors.New("the server was given slots after the connection was made")
)

// memberOf returns the address that a redirection names. The argument asked is the
// address of the member that sent it.
func memberOf(d *resp.Redirection, asked string) (string, bool) {
	at := strings.LastIndex(d.Host, ":")
	if at < 0 {
		return "", false
	}
	return memberHost(strings.Trim(d.Host[:at], "[]"), d.Host[at+1:], asked)
}
