package zkstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// applyTo takes o.Tick for the servers' tickTime, and returns the longest TTL.
func (o *Options) applyTo(l *session.Limits) (maxTTL time.Duration, err error) {
	if o.Tick > 0 {
		l.Tick = (o.Tick + time.Millisecond - 1).Truncate(time.Millisecond)
	}
	switch most := l.MaxTTL(); {
	case most < l.Tick:
		return 0, fmt.Errorf("%w: the longest session that the servers grant has %v, which is too short with a tick of %v: raise maxSessionTimeout on every server", store.ErrUnsupported, l.Most, l.Tick)
	case o.MaxTTL > most:
		return 0, fmt.Errorf("%w: MaxTTL is %v, and the servers allow %v: raise maxSessionTimeout on every server to at least %v", store.ErrUnsupported, o.MaxTTL, most, l.Class(o.MaxTTL)+l.Slack())
	case o.MaxTTL > 0:
		return max(o.MaxTTL, l.Tick), nil
	default:
		return most, nil
	}
}

// configNode is where ZooKeeper shows the members of the ensemble.
const configNode = "/zookeeper/config"

// voters returns how many members of an ensemble vote, 0 if it is a server that stands
// alone.
func voters(config string) (n int) {
	for line := range strings.Lines(config) {
		if strings.HasPrefix(line, "server.") && !strings.Contains(line, ":observer") {
			n++
		}
	}
	return n
}
