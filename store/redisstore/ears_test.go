package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// ears is a server with its pushes.
type ears struct {
	*scripted
	in *wire
	// examples has the lists of steps of the first seeds, as drawing them takes longer than
	// running them.
	examples [][]queueStep
	heard    map[string]bool // the owners whose channels are subscribed
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

// listen subscribes to an owner's channel, or unsubscribes from it.
func (e *ears) listen(owner string, yes bool) error {
	verb := "UNSUBSCRIBE"
	if yes {
		verb = "SUBSCRIBE"
	}
	_, err := e.in.Exchange(resp.Command(verb, script.ChannelBegin+owner))
	return err
}

// messages returns the pushes since the last call. The server has sent them before it
// answers later commands.
func (e *ears) messages() (all []string, err error) {
	if _, err := e.in.Conn.Write(resp.Command("PING")); err != nil {
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

// reset begins a run: the server is empty, and no channel is subscribed.
func (e *ears) reset(begin clock.Instant) error {
	if err := e.Begin(begin); err != nil {
		return err
	}
	if _, err := e.messages(); err != nil { // of a run that ended early
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

// hear subscribes to the channels of those owners.
func (e *ears) hear(owners []string) error {
	for _, owner := range owners {
		e.heard[owner] = true
		if err := e.listen(owner, true); err != nil {
			return err
		}
	}
	return nil
}

// turn subscribes to an owner's channel, or unsubscribes if it is subscribed.
func (e *ears) turn(owner string) error {
	if e.heard[owner] = !e.heard[owner]; !e.heard[owner] {
		delete(e.heard, owner)
	}
	return e.listen(owner, e.heard[owner])
}

// errSlow ends a run in which the clock of a real server has advanced so far that the right
// answer is unknown.
var errSlow = errors.New("too slow")

// slow reports whether the run is too slow at now, on the server's clock, for a token that
// was proposed at proposed.
func (e *ears) slow(now clock.Instant, proposed time.Time) bool {
	return e.sim == nil && (int64(now) > proposed.UnixNano() || time.Since(e.begun) > time.Second)
}

// near formats how long something lasts, as exactly as it can be known.
func (e *ears) near(d time.Duration) string {
	if e.sim == nil {
		d = d.Round(queueUnit)
	}
	return d.String()
}
