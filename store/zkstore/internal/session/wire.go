package session

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// wire is a connection to a server, as go-zookeeper uses it. It sees what that library
// hides: when requests leave and answers come, and the timeout that the server grants. It
// can end the connection without ending the session. It also carries the requests of the
// session itself, among those of the library, and keeps their answers from it: so several
// requests leave together and without the library's queue, and their zxids are known.
//
// The library writes each request with one Write, and reads whole answers. It keeps the
// zxid of the last answer without a lock, and while it tells a new server of its watches,
// an answer may already raise that zxid: the watches of what happened before would be
// silent. So answers reach it without their zxid, and the wire writes the session's own
// into the two requests that need one.
type wire struct {
	net.Conn
	in     *bufio.Reader
	link   *link
	before int64 // the last zxid of the answers on earlier connections of the session

	mu      sync.Mutex
	shaken  bool // the handshake was answered
	created bool // the handshake asks for a new session
	asked   clock.Instant
	xid     int32               // of the last request; those of the library get others here
	sent    map[int32]pending   // of those not yet answered
	watches map[string][]*Watch // by the paths of their nodes
	broken  bool                // nothing is sent any more
	auths   int                 // identities that were given

	out      []byte // what is to be written
	spare    []byte // its memory, when it was written
	flushing bool   // a goroutine is about to write it

	rest     []byte    // of the answer that is being read; only Read uses it
	deadline time.Time // of the reads; only the library's reader uses it
}

// pending is what is remembered of a request until it is answered.
type pending struct {
	op   int32
	sent clock.Instant
	xid  int32 // the library's
	// batch has the request if the session has sent it itself, as the one of that index.
	batch *Batch
	index int
}

func newWire(c net.Conn, l *link) *wire {
	return &wire{Conn: c, in: bufio.NewReaderSize(c, 16<<10), link: l, before: l.zxid.Load(), sent: make(map[int32]pending), watches: make(map[string][]*Watch)}
}

// SetReadDeadline implements net.Conn. A server that does not answer the handshake soon
// is given up, and the next one is asked; the library would wait for many times the
// session's timeout. After that, the library moves the deadline with every answer, twice.
// It is set only if that changes it much.
func (w *wire) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	shaken := w.shaken
	w.mu.Unlock()
	if !shaken {
		if limit := time.Now().Add(w.link.courtesy()); t.IsZero() || t.After(limit) {
			t = limit
		}
		return w.Conn.SetReadDeadline(t)
	}
	if t.IsZero() || t.Sub(w.deadline).Abs() < w.link.timeout/20 {
		return nil
	}
	w.deadline = t
	return w.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn. It does nothing: writes may be those of others, and
// the session ends a connection that does not answer.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// Close implements net.Conn. Nothing more is answered.
func (w *wire) Close() error {
	err := w.Conn.Close()
	w.fail(net.ErrClosed)
	return err
}

// Write implements net.Conn, for the library. A request to end the session is not sent
// unless the session is to end.
func (w *wire) Write(p []byte) (int, error) {
	now := w.link.clock.Now()
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
	if w.broken {
		w.mu.Unlock()
		return 0, net.ErrClosed
	}
	if len(p) < 12 {
		w.mu.Unlock()
		return 0, errors.New("a request without a header")
	}
	xid, op := int32(binary.BigEndian.Uint32(p[4:])), int32(binary.BigEndian.Uint32(p[8:]))
	switch {
	case op == opSetWatches && len(p) >= 20: // length, xid, operation, zxid
		binary.BigEndian.PutUint64(p[12:], uint64(w.before))
	case op == opClose && !w.link.ending.Load():
		w.mu.Unlock()
		w.Close()
		return len(p), nil
	case op == opAuth:
		w.auths++
	}
	at := len(w.out)
	w.out = append(w.out, p...)
	if xid > 0 {
		own := w.nextLocked(pending{op: op, sent: now, xid: xid})
		binary.BigEndian.PutUint32(w.out[at+4:], uint32(own))
	}
	auths := w.auths
	w.flushUnlock()
	if op == opAuth {
		w.link.introduced(w, auths)
	}
	return len(p), nil
}

// nextLocked remembers a request and returns its number.
func (w *wire) nextLocked(p pending) int32 {
	if w.xid++; w.xid <= 0 {
		w.xid = 1
	}
	w.sent[w.xid] = p
	return w.xid
}

// ask sends requests of the session, one right after the other.
func (w *wire) ask(b *Batch, requests []Request) {
	now := w.link.clock.Now()
	w.mu.Lock()
	if w.broken {
		w.mu.Unlock()
		for _, r := range requests {
			if r.watch != nil {
				close(r.watch.Over)
			}
		}
		b.lose(len(requests))
		return
	}
	for i, r := range requests {
		if r.watch != nil {
			w.watchLocked(r.watch)
		}
		xid := w.nextLocked(pending{op: r.op, sent: now, batch: b, index: i})
		w.out = binary.BigEndian.AppendUint32(w.out, uint32(8+len(r.body)))
		w.out = binary.BigEndian.AppendUint32(w.out, uint32(xid))
		w.out = binary.BigEndian.AppendUint32(w.out, uint32(r.op))
		w.out = append(w.out, r.body...)
	}
	w.flushUnlock()
}

// flushUnlock has what is to be written written. w.mu is held, and flushUnlock unlocks it. A
// few requests that are not answered certainly fit into the socket's buffer, so the caller
// writes them, which saves waking up another goroutine. If there are more, a goroutine that does
// nothing else writes: a server that takes nothing holds nobody up.
func (w *wire) flushUnlock() {
	idle, few := !w.flushing, len(w.sent) <= fewRequests && len(w.out) <= fewBytes
	w.flushing = true
	w.mu.Unlock()
	switch {
	case !idle:
	case few:
		w.flush(1)
	default:
		go w.flush(math.MaxInt)
	}
}

// What certainly fits into the buffer of a socket.
const (
	fewRequests = 16
	fewBytes    = 4 << 10
)

// flush writes what is to be written, with that many writes; a goroutine of its own continues.
// Goroutines that are about to send something go first: their requests then leave with the same
// write.
func (w *wire) flush(writes int) {
	runtime.Gosched()
	w.mu.Lock()
	var err error
	for ; len(w.out) > 0 && err == nil; writes-- {
		if writes == 0 {
			w.mu.Unlock()
			go w.flush(math.MaxInt)
			return
		}
		out := w.out
		w.out = w.spare[:0]
		w.mu.Unlock()
		_, err = w.Conn.Write(out)
		w.mu.Lock()
		w.spare = out
	}
	w.flushing = false
	w.mu.Unlock()
	if err != nil {
		w.Conn.Close() // Read says so
	}
}

// fail ends the connection for the session: no request that was not answered will be.
func (w *wire) fail(err error) {
	w.mu.Lock()
	shaken, first := w.shaken, !w.broken
	w.broken = true
	lost, watches := w.sent, w.watches
	w.sent, w.watches = nil, nil
	w.mu.Unlock()
	if !first {
		return
	}
	w.link.failed(w, err, shaken) // so that those that ask again wait for the next one
	for _, p := range lost {
		if p.batch != nil {
			p.batch.lose(1)
		}
	}
	for _, of := range watches {
		for _, watch := range of {
			close(watch.Over)
		}
	}
}

// Read implements net.Conn, for the library.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.rest) == 0 {
		answer, err := w.next()
		if err != nil {
			w.fail(err)
			return 0, err
		}
		if w.observe(answer[4:]) {
			w.rest = answer
		}
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

// observe takes notice of an answer, and takes its zxid out. It returns false if the
// answer is not for the library.
func (w *wire) observe(answer []byte) (library bool) {
	now := w.link.clock.Now()
	w.mu.Lock()
	if !w.shaken {
		w.shaken = true
		w.mu.Unlock()
		if len(answer) >= 16 {
			granted := time.Duration(int32(binary.BigEndian.Uint32(answer[4:]))) * time.Millisecond
			w.link.connected(w, binary.BigEndian.Uint64(answer[8:]), granted, exchange{w.asked, now}, w.created)
		}
		return true
	}
	if len(answer) < 16 {
		w.mu.Unlock()
		return true
	}
	xid, code := int32(binary.BigEndian.Uint32(answer)), int32(binary.BigEndian.Uint32(answer[12:]))
	r, ok := w.sent[xid]
	delete(w.sent, xid)
	w.mu.Unlock()
	zxid := int64(binary.BigEndian.Uint64(answer[4:]))
	if xid > 0 {
		w.link.zxid.Store(max(zxid, w.link.zxid.Load())) // answers come one after the other
		binary.BigEndian.PutUint64(answer[4:], 0)
	}
	if ok && code == 0 {
		switch r.op {
		case opSync:
			w.link.answered(w, exchange{r.sent, now}, false)
		case opCreate, opCreate2, opDelete, opSetData, opMulti, opCreateContainer:
			w.link.answered(w, exchange{r.sent, now}, true)
		}
	}
	switch {
	case xid == announcement:
		return !w.announced(answer[16:])
	case !ok:
		return true
	case r.batch == nil:
		binary.BigEndian.PutUint32(answer, uint32(r.xid))
		return true
	}
	a := Answer{Err: errorOf(code), body: answer[16:], zxid: zxid}
	r.batch.answer(r.index, a)
	if Broken(a.Err) { // as if the connection had broken, so that there is another one
		w.Conn.Close()
	}
	return false
}

// watchLocked sets a watch, before its request leaves: so no announcement is missed.
func (w *wire) watchLocked(of *Watch) {
	of.forget = w.unwatch
	w.watches[of.path] = append(w.watches[of.path], of)
}

// unwatch forgets a watch.
func (w *wire) unwatch(of *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.watches[of.path], func(other *Watch) bool { return other == of })
	if len(left) == 0 {
		delete(w.watches, of.path)
	} else {
		w.watches[of.path] = left
	}
}

// announcement is the number of an answer that announces a change. If that is the end of a node,
// the kind of the change is eventDeleted.
const (
	announcement = -1
	eventDeleted = 2
)

// announced takes an announcement of the server, and reports whether it was for a Watch.
func (w *wire) announced(event []byte) bool {
	f := fields{rest: event}
	what := f.int()
	f.int() // the state of the connection
	path := f.bytes()
	w.mu.Lock()
	told := w.watches[string(path)]
	delete(w.watches, string(path))
	w.mu.Unlock()
	for _, of := range told {
		of.Deleted = what == eventDeleted
		if len(of.then) == 0 {
			close(of.Over)
			continue
		}
		of.proven, _, _ = w.link.contacts(0)
		b := newBatch(of.Over, len(of.then))
		of.followed = b.answers
		w.ask(b, of.then)
	}
	return len(told) > 0
}
