package session

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A session that has ended keeps its reason, whatever its connection does afterwards. Callers
// that wait for the session return the reason, so it must not be nil.
func TestReasonStays(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	defer client.Close()
	l := &link{clock: clock.System(), timeout: time.Second, over: make(chan struct{})}
	w := newWire(client, l)
	l.wire = w
	later := func() {
		l.connected(w, 7, l.timeout, exchange{}, false)
		l.failed(w, errors.New("reset"), false)
		l.giveUp(time.Second)
		l.finish(errors.New("another reason"))
	}
	why := errors.New("the first reason")
	l.finish(why)
	later()
	if got := l.reason(); got != why {
		t.Errorf("the reason is %v, want %v", got, why)
	}
	if _, err := l.reach(t.Context(), false); err != why {
		t.Errorf("reach returned %v, want %v", err, why)
	}
}

// The servers can end a session in their answer to a handshake.
func TestServersEndTheSession(t *testing.T) {
	for name, c := range map[string]struct {
		id      uint64
		granted time.Duration
		over    bool // the error matches ErrOver
	}{
		"session unknown":    {0, time.Second, true},
		"timeout cut short":  {7, time.Second / 2, false},
		"timeout as we want": {7, time.Second, false},
	} {
		l := &link{clock: clock.System(), timeout: time.Second, over: make(chan struct{})}
		l.connected(nil, c.id, c.granted, exchange{}, false)
		ends := name != "timeout as we want"
		if got := l.ended(); got != ends {
			t.Errorf("%s: the session has ended: %t, want %t", name, got, ends)
		}
		if err := l.reason(); (err != nil) != ends || errors.Is(err, ErrOver) != c.over {
			t.Errorf("%s: the reason is %v", name, err)
		}
	}
}
