package zkstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// limits are the limits of sessions, as the servers grant them.
type limits struct {
	tick time.Duration
	// most is the longest timeout of a session.
	most   time.Duration
	maxTTL time.Duration
}

// slack is how much longer the timeout of a session is than the TTL of its leases.
func (l limits) slack() time.Duration { return slackTicks * l.tick }

// class returns the TTL of the sessions in which leases of this TTL are kept.
func (l limits) class(ttl time.Duration) time.Duration {
	return (ttl + l.tick - 1) / l.tick * l.tick
}

// limits asks the servers for the shortest and the longest session that they grant.
func (o *Options) limits(ctx context.Context) (limits, error) {
	var why error
	for _, server := range o.Servers {
		l, err := o.limitsOf(ctx, server)
		if err == nil {
			return l, o.checkLimits(&l)
		}
		why = fmt.Errorf("%s: %w", server, err)
		if ctx.Err() != nil {
			break
		}
	}
	return limits{}, why
}

func (o *Options) limitsOf(ctx context.Context, server string) (l limits, err error) {
	least, err := granted(ctx, server, time.Millisecond)
	if err != nil {
		return l, err
	}
	l.most, err = granted(ctx, server, math.MaxInt32*time.Millisecond)
	l.tick = max(least/2, time.Millisecond)
	return l, err
}

func (o *Options) checkLimits(l *limits) error {
	if o.Tick > 0 {
		l.tick = o.Tick
	}
	l.maxTTL = (l.most - l.slack()) / l.tick * l.tick
	if l.maxTTL < l.tick {
		return fmt.Errorf("%w: the longest session that the servers grant has %v, which is too short with a tick of %v: raise maxSessionTimeout on every server", store.ErrUnsupported, l.most, l.tick)
	}
	if o.MaxTTL > l.maxTTL {
		return fmt.Errorf("%w: MaxTTL is %v, and the servers allow %v: raise maxSessionTimeout on every server to at least %v", store.ErrUnsupported, o.MaxTTL, l.maxTTL, l.class(o.MaxTTL)+l.slack())
	}
	if o.MaxTTL > 0 {
		l.maxTTL = o.MaxTTL
	}
	return nil
}

// granted asks a server for a session with that timeout, ends it, and returns the timeout
// that the server granted.
func granted(ctx context.Context, server string, timeout time.Duration) (time.Duration, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	// length, version, zxid, timeout, session, password
	ask := binary.BigEndian.AppendUint32(nil, 44)
	ask = append(ask, make([]byte, 12)...)
	ask = binary.BigEndian.AppendUint32(ask, uint32(timeout.Milliseconds()))
	ask = append(ask, make([]byte, 8)...)
	ask = binary.BigEndian.AppendUint32(ask, 16)
	ask = append(ask, make([]byte, 16)...)
	if _, err := c.Write(ask); err != nil {
		return 0, err
	}
	var head [20]byte // length, version, timeout, session
	if _, err := io.ReadFull(c, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is no ZooKeeper, or it serves nobody: perhaps its ensemble has no majority")
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("it has not answered: %w", ctx.Err())
		}
		return 0, err
	}
	ms := int32(binary.BigEndian.Uint32(head[8:]))
	if ms <= 0 || binary.BigEndian.Uint32(head[:]) > 1<<10 {
		return 0, errors.New("it is no ZooKeeper")
	}
	end := binary.BigEndian.AppendUint32(nil, 8)
	end = binary.BigEndian.AppendUint32(end, 1)
	op := int32(opClose)
	end = binary.BigEndian.AppendUint32(end, uint32(op))
	_, err = c.Write(end)
	if err == nil {
		_, _ = io.Copy(io.Discard, c) // until the server has ended the session
	}
	return time.Duration(ms) * time.Millisecond, nil
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
