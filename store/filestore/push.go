package filestore

import (
	"encoding/binary"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A process that waits has a socket in a directory beside the lock file, and its
// places in the line say which. A step that hands a lock to a place looks first
// whether anybody has its socket open: if not, the waiter is dead and the next one
// has its turn. Once the step is committed, the socket gets a message.
//
// A message says with which token the lease was handed over, and until when it
// lasts, which is all that the waiter needs. It may come late or never: the waiter
// looks at the row now and then all the same.

// socketsSuffix is added to the name of the lock file for the directory.
const socketsSuffix = "-waiters"

// socketName is how long the name of a socket is.
const socketName = 16

// presence is what can be said of a waiter.
type presence int

const (
	unknown presence = iota // no socket, or one that this process may not use
	alive
	dead
)

// pusher tells the waiters of other processes, and listens for those of its own.
// The zero value does neither.
type pusher struct {
	dir    string // of the sockets
	shared bool
	hear   func(message)
	log    *slog.Logger

	mu     sync.Mutex
	own    *mailbox  // nil until somebody waits
	not    time.Time // until when there is no use in trying to have one
	closed bool
	wire   wire // for sending
}

// message tells a wait that its turn has come.
type message struct {
	Lock, Wait string
	// Token is that of the lease; zero: there is room for one, to be asked for.
	Token fence.Token
	// Expiry is the lease's, by the clock that counts TTLs.
	Expiry clock.Instant
}

// A message in bytes: token and expiry, 8 bytes each, the wait's name, its length
// before it, and the lock's name.
const messageHead = 8 + 8 + 1

func (m message) encode() []byte {
	text := make([]byte, 0, messageHead+len(m.Wait)+len(m.Lock))
	text = binary.BigEndian.AppendUint64(text, uint64(m.Token))
	text = binary.BigEndian.AppendUint64(text, uint64(m.Expiry))
	text = append(text, byte(len(m.Wait)))
	text = append(text, m.Wait...)
	return append(text, m.Lock...)
}

func decodeMessage(text []byte) (m message, ok bool) {
	if len(text) < messageHead {
		return message{}, false
	}
	names := text[messageHead:]
	n := int(text[messageHead-1])
	if len(names) < n || n == 0 {
		return message{}, false
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

// socket is the name of this process's socket, made if need be; empty if there
// can be none.
func (p *pusher) socket() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" || p.closed || time.Now().Before(p.not) {
		return ""
	}
	if p.own != nil && p.own.there() {
		return p.own.name
	}
	if p.own != nil { // somebody has removed it
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
		p.log.Info("waiters poll the lock file: they cannot have a socket beside it", "dir", p.dir, "err", err)
		return ""
	}
	p.own = box
	return box.name
}

// presence says whether a process has the socket open.
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

// send tells the waiter that its turn has come, and does not wait.
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

// reaches says whether socket is the name of one in the directory. The row may have
// been written by anybody who shares the file.
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
