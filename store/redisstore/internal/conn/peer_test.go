package conn

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// ask is the call of these tests: what is sent, and a function that is called once with
// the reply or an error.
type ask struct {
	out  []byte
	done func(resp.Value, error)
}

var (
	errLost     = errors.New("lost")     // the call may have been executed
	errUnsent   = errors.New("not sent") // it was not
	errPromoted = errors.New("the reply was PROMOTED")
)

// asker is the owner of a Peer whose server is at the other end of what dial returns.
type asker struct {
	Peer[ask]
	dial    func() (net.Conn, error)
	timeout time.Duration
	inline  time.Duration
	pushes  chan string
	due     time.Time // of the upkeep
	upkeep  int       // how often it was done
	lost    int       // calls that LostLocked was called for
	until   time.Time // nobody waits for answers after that; zero: for ever
}

func newAsker(t *testing.T, dial func() (net.Conn, error)) *asker {
	a := &asker{dial: dial, timeout: time.Minute, pushes: make(chan string, 100)}
	a.Init(a, &config.Config{Clock: clock.System(), ConnectTimeout: time.Minute})
	t.Cleanup(func() { a.Close(net.ErrClosed) })
	a.Start()
	return a
}

// put enqueues out. The channel gets the reply, or the error.
func (a *asker) put(out string) <-chan string {
	said := make(chan string, 1)
	a.do(ask{[]byte(out), func(v resp.Value, err error) {
		if err != nil {
			said <- err.Error()
		} else {
			said <- string(v.Text)
		}
	}}, false)
	return said
}

func (a *asker) do(c ask, more bool) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if _, err := a.RefusesLocked(false); err != nil {
		go c.done(resp.Value{}, err)
		return
	}
	a.Waiting.Push(c)
	a.AnnounceLocked(more)
}

func (a *asker) Reach() (*Pipe[ask], error) {
	c, err := a.dial()
	if err != nil {
		return nil, err
	}
	h := &asking{a: a}
	a.Attach(&h.Pipe, "", c, h)
	return &h.Pipe, nil
}
func (a *asker) ConnectedLocked(time.Time, bool)                          {}
func (a *asker) Connected()                                               {}
func (a *asker) DownLocked(why error, _ time.Duration, _ time.Time) error { return why }
func (a *asker) WantsLocked() bool                                        { return false }
func (a *asker) UnsentLocked(ask)                                         {}
func (a *asker) Unsent(c ask, why error)                                  { c.done(resp.Value{}, why) }
func (a *asker) IsLate(_ *ask, at time.Time) bool                         { return !a.until.IsZero() && at.After(a.until) }
func (a *asker) Repeats(*ask) bool                                        { return false }
func (a *asker) Inline() time.Duration                                    { return a.inline }
func (a *asker) Waiters() int64                                           { return 0 }
func (a *asker) Sent()                                                    {}
func (a *asker) Rest(Moment)                                              {}
func (a *asker) Gathers(bool) bool                                        { return false }

// asking is the handler of one connection.
type asking struct {
	Pipe[ask]
	a     *asker
	taken []ask
}

func (h *asking) Greet(context.Context) error { return nil }

func (h *asking) AppendLocked(out []byte, _ int, now time.Time) []byte {
	c, _ := h.a.Waiting.Pop()
	return h.AppendAgainLocked(c, out, now)
}

func (h *asking) AppendAgainLocked(c ask, out []byte, now time.Time) []byte {
	h.LaunchLocked(c, h.a.timeout, now)
	return append(out, c.out...)
}

func (h *asking) ProbeLocked(now time.Time) ([]byte, func() bool) {
	alive := make(chan bool, 1)
	h.LaunchLocked(ask{done: func(_ resp.Value, err error) { alive <- !errors.Is(err, errLost) }}, h.a.timeout, now)
	return []byte("+PROBE\r\n"), func() bool { return <-alive }
}

func (h *asking) TakeLocked(v resp.Value) error {
	c, _ := h.PopLocked()
	h.taken = h.taken[:0]
	switch string(v.Text) {
	case "AGAIN":
		h.AgainLocked(c)
	case "PROMOTED":
		h.AgainLocked(c)
		return errPromoted
	default:
		h.taken = append(h.taken, c)
	}
	return nil
}

func (h *asking) Reply(v resp.Value) {
	for _, c := range h.taken {
		c.done(v, nil)
	}
}

func (h *asking) Push(v resp.Value) error {
	h.a.pushes <- string(v.List[0].Text)
	return nil
}

func (h *asking) UpkeepLocked(now time.Time) {
	if !h.a.due.IsZero() && !now.Before(h.a.due) {
		h.a.due = now.Add(time.Minute)
		h.a.upkeep++
	}
}

func (h *asking) DueLocked(time.Time, bool) time.Time { return h.a.due }

func (h *asking) LostLocked() {
	for range h.AllLocked {
		h.a.lost++
	}
}

func (h *asking) Doubted(late []ask) {
	for _, c := range late {
		c.done(resp.Value{}, errLost)
	}
}

func (h *asking) Broken(error, time.Duration) {
	for c, ok := h.Unsent(); ok; c, ok = h.Unsent() {
		c.done(resp.Value{}, errUnsent)
	}
	for c, ok := h.Unanswered(); ok; c, ok = h.Unanswered() {
		c.done(resp.Value{}, errLost)
	}
}
