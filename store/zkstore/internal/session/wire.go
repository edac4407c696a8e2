package session

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Codes of requests in ZooKeeper's protocol.
const (
	opCreate          = 1
	opDelete          = 2
	opSetData         = 5
	opSync            = 9
	opMulti           = 14
	opCreate2         = 15
	opCreateContainer = 19
	opSetWatches      = 101
	opClose           = -11
)

// wire is a connection to a server, as go-zookeeper uses it. It sees what that library
// hides: when requests leave and answers come, the timeout that the server grants, and
// the zxid that made a node. It can also end the connection without ending the session.
//
// The library writes each request with one Write, and reads whole answers. It keeps the
// zxid of the last answer without a lock, and while it tells a new server of its watches,
// an answer may already raise that zxid: the watches of what happened before would be
// silent. So answers reach it without their zxid, and the wire writes the session's own
// into the two requests that need one.
type wire struct {
	net.Conn
	in      *bufio.Reader
	session *Session
	before  int64 // the last zxid of the answers on earlier connections of the session

	mu      sync.Mutex
	shaken  bool // the handshake was answered
	created bool // the handshake asks for a new session
	asked   clock.Instant
	sent    map[int32]pending // of those not yet answered

	rest []byte // of the answer that is being read; only Read uses it
}

// pending is what is remembered of a request until it is answered.
type pending struct {
	op   int32
	sent clock.Instant
}

func newWire(c net.Conn, s *Session) *wire {
	return &wire{Conn: c, in: bufio.NewReaderSize(c, 16<<10), session: s, before: s.zxid.Load(), sent: make(map[int32]pending)}
}

// SetReadDeadline implements net.Conn. A server that does not answer the handshake soon
// is given up, and the next one is asked; the library would wait for many times the
// session's timeout.
func (w *wire) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	shaken := w.shaken
	w.mu.Unlock()
	if limit := time.Now().Add(w.session.courtesy()); !shaken && (t.IsZero() || t.After(limit)) {
		t = limit
	}
	return w.Conn.SetReadDeadline(t)
}

// Write implements net.Conn. A request to create a node is sent as create2, whose answer
// begins in the same way and goes on with the node's zxid. A request to end the session
// is not sent unless the session is to end.
func (w *wire) Write(p []byte) (int, error) {
	now := w.session.clock.Now()
	w.mu.Lock()
	if w.asked == 0 {
		w.asked = now
		if len(p) >= 28 { // length, version, zxid, timeout, session
			w.created = binary.BigEndian.Uint64(p[20:]) == 0
			binary.BigEndian.PutUint64(p[8:], uint64(w.before))
		}
		w.mu.Unlock()
		return w.Conn.Write(p)
	}
	if len(p) < 12 {
		w.mu.Unlock()
		return 0, errors.New("a request without a header")
	}
	xid, op := int32(binary.BigEndian.Uint32(p[4:])), int32(binary.BigEndian.Uint32(p[8:]))
	if xid > 0 {
		w.sent[xid] = pending{op, now}
	}
	w.mu.Unlock()
	switch {
	case op == opCreate:
		binary.BigEndian.PutUint32(p[8:], opCreate2)
		// Before the answer can come. Other requests leave after this one: the library
		// writes them one after the other.
		w.session.makes(pathOf(p[12:]))
	case op == opSetWatches && len(p) >= 20: // length, xid, operation, zxid
		binary.BigEndian.PutUint64(p[12:], uint64(w.before))
	case op == opClose && !w.session.ending.Load():
		w.Conn.Close()
		return len(p), nil
	}
	return w.Conn.Write(p)
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		answer, err := w.next()
		if err != nil {
			w.mu.Lock()
			shaken := w.shaken
			w.mu.Unlock()
			w.session.failed(w, err, shaken)
			return 0, err
		}
		w.observe(answer[4:])
		w.rest = answer
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// next reads one answer, with its length.
func (w *wire) next() ([]byte, error) {
	const most = 64 << 20
	head, err := w.in.Peek(4)
	if err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head)
	if n > most {
		return nil, errors.New("the server sent an answer of more than 64 MiB, or is no ZooKeeper")
	}
	answer := make([]byte, 4+n)
	_, err = io.ReadFull(w.in, answer)
	return answer, err
}

// observe takes notice of an answer, and takes its zxid out.
func (w *wire) observe(answer []byte) {
	now := w.session.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.shaken {
		w.shaken = true
		if len(answer) >= 16 {
			granted := time.Duration(int32(binary.BigEndian.Uint32(answer[4:]))) * time.Millisecond
			w.session.connected(w, binary.BigEndian.Uint64(answer[8:]), granted, exchange{w.asked, now}, w.created)
		}
		return
	}
	if len(answer) < 16 {
		return
	}
	xid, failed := int32(binary.BigEndian.Uint32(answer)), binary.BigEndian.Uint32(answer[12:]) != 0
	if zxid := int64(binary.BigEndian.Uint64(answer[4:])); xid > 0 {
		w.session.zxid.Store(max(zxid, w.session.zxid.Load())) // answers come one after the other
		binary.BigEndian.PutUint64(answer[4:], 0)
	}
	r, ok := w.sent[xid]
	delete(w.sent, xid)
	if !ok || failed {
		return
	}
	switch r.op {
	case opSync:
		w.session.answered(w, exchange{r.sent, now}, false)
	case opCreate, opDelete, opSetData, opMulti, opCreateContainer:
		w.session.answered(w, exchange{r.sent, now}, true)
	}
	if r.op == opCreate {
		if path, czxid, ok := created(answer[16:]); ok {
			w.session.made(path, czxid)
		}
	}
}

// pathOf returns the string that a request begins with.
func pathOf(p []byte) string {
	if len(p) < 4 {
		return ""
	}
	n := int(int32(binary.BigEndian.Uint32(p)))
	return string(p[4:max(4, min(4+n, len(p)))])
}

// created reads the answer to create2: the path, and what the node is, of which the zxid
// that made it comes first.
func created(answer []byte) (path string, czxid int64, ok bool) {
	if len(answer) < 4 {
		return "", 0, false
	}
	n := int(int32(binary.BigEndian.Uint32(answer)))
	if n < 0 || len(answer) < 4+n+8 {
		return "", 0, false
	}
	return string(answer[4 : 4+n]), int64(binary.BigEndian.Uint64(answer[4+n:])), true
}
