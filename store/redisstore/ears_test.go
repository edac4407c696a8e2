package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// ears is a server with its push messages.
type ears struct {
	*scripted
	in *session
	// examples are the lists of steps of the first seeds: it takes longer to draw them
	// than to run them.
	examples [][]lineStep
	heard    map[string]bool // the owners whose channel is listened to
	begun    time.Time
}

func listening(t *testing.T, n *scripted) *ears {
	t.Helper()
	w := n.another(t)
	if _, err := w.Exchange(resp.Command("SUBSCRIBE", "always")); err != nil {
		t.Fatal(err)
	}
	return &ears{scripted: n, in: w}
}

// listen begins or ends listening to an owner's channel.
func (e *ears) listen(owner string, yes bool) error {
	verb := "UNSUBSCRIBE"
	if yes {
		verb = "SUBSCRIBE"
	}
	_, err := e.in.Exchange(resp.Command(verb, script.ChannelBegin+owner))
	return err
}

// messages are those that came since the last call. The server has sent them before it
// answers what is asked later.
func (e *ears) messages() (all []string, err error) {
	if _, err := e.in.Conn.Write(pingCommand.Bytes); err != nil {
		return nil, err
	}
	for {
		v, err := e.in.In.Next()
		switch {
		case err != nil:
			return nil, err
		case len(v.List) == 3:
			all = append(all, string(v.List[2].Text))
		default:
			return all, nil
		}
	}
}

// reset begins a run: the server has nothing, and nobody is listened to.
func (e *ears) reset(begin clock.Instant) error {
	if err := e.Begin(begin); err != nil {
		return err
	}
	if _, err := e.messages(); err != nil { // of a run that was given up
		return err
	}
	for owner := range e.heard {
		if err := e.listen(owner, false); err != nil {
			return err
		}
	}
	e.heard, e.begun = map[string]bool{}, time.Now()
	return nil
}

// hear listens to the channels of those owners.
func (e *ears) hear(owners []string) error {
	for _, owner := range owners {
		e.heard[owner] = true
		if err := e.listen(owner, true); err != nil {
			return err
		}
	}
	return nil
}

// turn listens to an owner's channel, or no more.
func (e *ears) turn(owner string) error {
	if e.heard[owner] = !e.heard[owner]; !e.heard[owner] {
		delete(e.heard, owner)
	}
	return e.listen(owner, e.heard[owner])
}

// errSlow ends a run in which a clock that cannot be set went on for so long that
// there is no telling what is right.
var errSlow = errors.New("too slow")

// slow reports whether that is so at now, on the server's clock, when a token was proposed.
func (e *ears) slow(now clock.Instant, proposed time.Time) bool {
	return e.sim == nil && (int64(now) > proposed.UnixNano() || time.Since(e.begun) > time.Second)
}

// near is how long something lasts, as far as it can be held to it.
func (e *ears) near(d time.Duration) string {
	if e.sim == nil {
		d = d.Round(lineUnit)
	}
	return d.String()
}
