package filestore

import (
	"encoding/binary"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// A process with waiters has a socket in a directory beside the lock file, and
// its places in the queue name that socket. A step that hands on a lock first
// checks whether a process has the socket of the next place open. If none has,
// the waiter is dead and is skipped. After the commit the step sends a message to
// the socket.
//
// The message has the token and the end of the lease, which is all that the
// waiter needs. It may be late or lost, so the waiter also reads the row from
// time to time.
//
// A process with holders has a socket, too. It is told there which owner's lease
// was broken.

// socketsSuffix is added to the name of the lock file for the directory.
const socketsSuffix = "-waiters"

// socketName is the length of a socket's name.
const socketName = 16

// presence is what is known of the process behind a socket.
type presence int

const (
	unknown presence = iota // no socket, or one that this process may not use
	alive
	dead
)

// pusher sends messages to other processes, and receives those for this one. The
// zero value does neither.
type pusher struct {
	dir    string // of the sockets
	shared bool
	hear   func(message)
	log    *slog.Logger

	mu     sync.Mutex
	own    *mailbox  // nil until it is needed
	not    time.Time // do not try to open own before this time
	closed bool
	wire   wire // for sending
}

// message tells a waiter that its turn has come, or a holder that its lease was
// broken.
type message struct {
	Lock, Wait string
	// Token is the token of the lease. Zero means that the lock is free and the
	// waiter has to ask for it.
	Token fence.Token
	// Expiry is the end of the lease, by the clock that counts TTLs.
	Expiry clock.Instant
	// Broken is the owner whose lease was broken, or empty. If it is set, all else is zero.
	Broken string
}

// A message in bytes: token and expiry, 8 bytes each, the wait's name, its length
// before it, and the lock's name. If the wait has no name, the owner of a broken
// lease takes the place of the lock's name.
const messageHead = 8 + 8 + 1

func (m message) encode() []byte {
	text := make([]byte, 0, messageHead+len(m.Wait)+len(m.Lock))
	text = binary.BigEndian.AppendUint64(text, uint64(m.Token))
	text = binary.BigEndian.AppendUint64(text, uint64(m.Expiry))
	text = append(text, byte(len(m.Wait)))
	text = append(text, m.Wait...)
	text = append(text, m.Lock...)
	return append(text, m.Broken...)
}

func decodeMessage(text []byte) (m message, ok bool) {
	if len(text) < messageHead {
		return message{}, false
	}
	names := text[messageHead:]
	n := int(text[messageHead-1])
	switch {
	case len(names) < n:
		return message{}, false
	case n == 0:
		owner := string(names)
		return message{Broken: owner}, store.CheckOwner(owner) == nil
	}
	return message{
		Lock:   string(names[n:]),
		Wait:   string(names[:n]),
		Token:  fence.Token(binary.BigEndian.Uint64(text)),
		Expiry: clock.Instant(binary.BigEndian.Uint64(text[8:])),
	}, true
}

func newPusher(real string, o *Options, hear func(message), log *slog.Logger) *pusher {
	return &pusher{dir: real + socketsSuffix, shared: o.Shared, hear: hear, log: log}
}

// socket returns the name of this process's socket, and makes the socket if
// needed. It returns "" if there can be none.
func (p *pusher) socket() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" || p.closed || time.Now().Before(p.not) {
		return ""
	}
	if p.own != nil && p.own.there() {
		return p.own.name
	}
	if p.own != nil { // its file was removed
		p.own.close()
		p.own = nil
	}
	box, err := openMailbox(p.dir, p.shared, func(text []byte) {
		if m, ok := decodeMessage(text); ok {
			p.hear(m)
		}
	})
	if err != nil {
		p.not = time.Now().Add(time.Minute)
		p.log.Info("cannot create a socket beside the lock file; waiters will poll, and holders learn of a break when they renew", "dir", p.dir, "err", err)
		return ""
	}
	p.own = box
	return box.name
}

// listens reports whether this process has opened its socket.
func (p *pusher) listens() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own != nil
}

// presence reports whether a process has the socket open.
func (p *pusher) presence(socket string) presence {
	if !p.reaches(socket) {
		return unknown
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return unknown
	case p.own != nil && p.own.name == socket:
		return alive
	}
	return p.wire.probe(p.dir, socket)
}

// send sends m to the waiter's socket. It does not block.
func (p *pusher) send(socket string, m message) {
	if !p.reaches(socket) {
		return
	}
	p.mu.Lock()
	own := p.own != nil && p.own.name == socket
	if !p.closed && !own {
		p.wire.send(p.dir, socket, m.encode())
	}
	p.mu.Unlock()
	if own {
		p.hear(m)
	}
}

// sendAll sends m to all other processes that have a socket. It does not wait for them.
func (p *pusher) sendAll(m message) {
	if p.dir == "" {
		return
	}
	entries, _ := os.ReadDir(p.dir) // nobody has a socket if it is missing
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range entries {
		if name := e.Name(); !p.closed && p.reaches(name) && (p.own == nil || p.own.name != name) {
			p.wire.send(p.dir, name, m.encode())
		}
	}
}

// reaches reports whether socket can be the name of a socket in the directory.
// Anybody who shares the file may have written the row.
func (p *pusher) reaches(socket string) bool {
	const digits = "abcdefghijklmnopqrstuvwxyz234567" // of rand.Text
	return p.dir != "" && len(socket) == socketName && strings.Trim(socket, digits) == ""
}

func (p *pusher) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.own != nil {
		p.own.close()
		p.own = nil
	}
	p.wire.close()
}
