package redis

import (
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/majority"
)

// inbox is where a node's server says, unasked, that somebody's turn has come: a
// connection that listens to the store's channel. There is none before somebody
// waits, nor for long afterwards. What it hears is a hint: whenever something may
// have been missed, all who wait ask the node again.
type inbox struct {
	n *node

	mu      sync.Mutex
	running bool
	hears   bool      // what the server says
	refused time.Time // when the server last said that we may not listen
}

const (
	// inboxStays is how long an inbox outlives the last who waited.
	inboxStays = time.Minute
	// inboxProof is how often the connection is tried while somebody waits and
	// nothing is heard.
	inboxProof = 3 * time.Second
	// inboxRefused is how long a server that does not let us listen is left alone.
	inboxRefused = time.Minute
)

// unheard is why a server does not let us listen.
type unheard struct{ err error }

func (u *unheard) Error() string { return u.err.Error() }

var errUnneeded = errors.New("nobody waits any more")

// open has the inbox opened if it is not, and says whether it hears at present. It
// is called by one of the node's goroutines.
func (i *inbox) open() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.running && (i.refused.IsZero() || time.Since(i.refused) > inboxRefused) {
		i.running = true
		i.n.all.Go(i.run)
	}
	return i.hears
}

// run is the inbox's goroutine. It ends when nobody needs it, when it is refused,
// or with the node.
func (i *inbox) run() {
	for failures := 0; ; failures++ {
		heard, err := i.listen()
		var no *unheard
		if i.n.ctx.Err() != nil {
			return
		}
		if heard {
			failures = 0
		}
		refused := errors.As(err, &no)
		if refused || failures == 1 {
			// Who counts on being told has to know that nobody is: asking again says so.
			i.n.s.keeper.Poll(i.n.index)
		}
		if refused {
			i.leave(err)
			return
		}
		if i.end(func() bool { return !i.n.s.awaits() }) {
			return
		}
		select {
		case <-time.After(min(firstRetry<<min(failures, 5), time.Second)):
		case <-i.n.ctx.Done():
			return
		}
	}
}

// leave ends the inbox for a while, since the server does not let us listen.
func (i *inbox) leave(err error) {
	first := false
	i.end(func() bool {
		first = i.refused.IsZero()
		i.refused = time.Now()
		return true
	})
	if first {
		i.n.log.Warn("the server does not let us listen: who waits for a lock asks for it now and then instead", "err", err)
	}
}

// end ends the inbox if that is so.
func (i *inbox) end(so func() bool) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running = !so()
	return !i.running
}

func (i *inbox) hearing(yes bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hears = yes
}

// listen makes a connection and hears what the server says until it breaks, or is
// not needed any more.
func (i *inbox) listen() (heard bool, err error) {
	n := i.n
	e, err := n.subscribe()
	if err != nil {
		return false, err
	}
	defer e.close()
	i.hearing(true)
	defer i.hearing(false)
	n.s.keeper.Poll(n.index)
	for {
		v, err := e.in.next()
		if err != nil {
			return true, err
		}
		if len(v.list) != 3 || string(v.list[0].text) != "message" {
			continue // the answer to a PING
		}
		told, ok := readTold(string(v.list[2].text))
		switch {
		case !ok:
			n.log.Debug("a message to those who wait is not understood", "message", v.list[2].String())
		case told.granted:
			n.s.keeper.Handed(n.index, told.owner, majority.Answer{Token: told.token, From: told.stamp, Clock: told.clock, At: e.at})
		default:
			n.s.keeper.Freed(n.index, told.owner)
		}
	}
}

// ear is a connection that has subscribed.
type ear struct {
	*wire
	in   replies
	late time.Time // the deadline of reading
}

func (e *ear) close() {
	e.forget()
	e.conn.Close()
}

// subscribe connects to the server and its channel.
func (n *node) subscribe() (*ear, error) {
	w, err := n.open(func(w *wire) error {
		said, err := w.exchange(append(n.login(), newCommand("CLIENT", "SETNAME", "leasehold-inbox"), newCommand("SUBSCRIBE", n.s.channel)))
		if err != nil {
			return err
		}
		switch last := said[len(said)-1]; {
		case last.isError("LOADING"):
			return newRefused(last)
		case last.kind == '-':
			return &unheard{newRefused(last)}
		case len(last.list) != 3:
			return &unheard{notUnderstood(last)}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	e := &ear{wire: w}
	e.in = newReplies(e)
	return e, nil
}

func (e *ear) wait(now time.Time, patience time.Duration) {
	e.late = now.Add(patience)
	e.conn.SetReadDeadline(e.late)
}

// Read is where the messages come from. A connection on which nothing comes while
// somebody waits is tried: it may be dead without anybody having said so.
func (e *ear) Read(b []byte) (int, error) {
	for tried := false; ; {
		switch now := time.Now(); {
		case tried:
			e.wait(now, e.n.s.o.ConnectTimeout)
		case e.late.Sub(now) < inboxProof/2: // to set it each time takes longer than to read
			e.wait(now, inboxProof)
		}
		n, err := e.receive(b)
		switch {
		case n > 0 || !isTimeout(err):
			e.at = e.n.s.o.Clock.Now()
			return n, err
		case tried:
			return 0, errSilent
		case !e.n.s.awaits():
			return 0, errUnneeded
		case e.n.s.waiting.Load() == 0:
			continue
		}
		e.conn.SetWriteDeadline(time.Now().Add(e.n.s.o.ConnectTimeout))
		if _, err := e.conn.Write(pingCommand.bytes); err != nil {
			return 0, err
		}
		tried = true
	}
}
