package zk

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
)

// patience bounds the wait for something that has to come.
const patience = time.Minute

// server is the other end of a connection.
type server struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func newServer(t *testing.T, c net.Conn) server {
	c.SetDeadline(time.Now().Add(patience))
	return server{t, c, bufio.NewReader(c)}
}

// gets reads one message, without its length.
func (s server) gets() []byte {
	s.t.Helper()
	b, err := readPacket(s.in, 1<<20)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// says sends messages, with one write.
func (s server) says(messages ...[]byte) {
	s.t.Helper()
	var out []byte
	for _, m := range messages {
		out = append(appendInt(out, int32(len(m))), m...)
	}
	if _, err := s.Write(out); err != nil {
		s.t.Error(err)
	}
}

// numbered is the beginning of an answer.
func numbered(xid int32, zxid int64, code int32) []byte {
	return appendInt(appendLong(appendInt(nil, xid), zxid), code)
}

// change is the announcement of a change of the node with that path.
func change(what int32, path string) []byte {
	return appendBytes(appendInt(appendInt(numbered(announcement, -1, 0), what), 3), path)
}

// startless returns a session that nobody runs yet, with a timeout of four minutes.
func startless(t *testing.T, o Options) *Session {
	o.Clock, o.Limits.Tick = clock.System(), time.Minute
	ss := NewPool(o).newSession(time.Minute)
	t.Cleanup(func() { ss.finish(errClosed) })
	return ss
}

// over returns a connection of a session, and its other end.
func over(t *testing.T) (*Session, *conn, server) {
	ss := startless(t, Options{Base: "/"})
	c, server := another(t, ss)
	return ss, c, server
}

// another gives the session a connection, as connect does, and returns the other end as well.
func another(t *testing.T, ss *Session) (*conn, server) { return anotherAt(t, ss, 0) }

// anotherAt is another for a connection that was made at an instant.
func anotherAt(t *testing.T, ss *Session, at clock.Instant) (*conn, server) {
	ours, theirs := sockets(t)
	c := &conn{Conn: ours, session: ss, in: bufio.NewReader(ours)}
	t.Cleanup(func() { ours.Close(); theirs.Close(); <-c.gone })
	ss.begin(c, handshake{id: 77}, exchange{at, at})
	return c, newServer(t, theirs)
}

// sockets returns both ends of a connection.
func sockets(t *testing.T) (ours, theirs net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ours, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// sends has the session send requests, and returns what they are answered with.
func sends(t *testing.T, ss *Session, requests ...Request) <-chan []Answer {
	answers := make(chan []Answer, 1)
	go func() {
		a, err := ss.Once(t.Context(), requests...)
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	return answers
}

// Requests leave together and are answered in order. What is not answered when the connection
// breaks is lost.
func TestRequestsInARow(t *testing.T) {
	ss, _, server := over(t)
	requests := []Request{Delete("/a", AnyVersion), List("/b"), List("/c")}
	answers := sends(t, ss, requests...)
	for i, r := range requests {
		got := server.gets()
		if xid, op := int32(binary.BigEndian.Uint32(got)), int32(binary.BigEndian.Uint32(got[4:])); xid != int32(i+1) || op != r.op || string(got[8:]) != string(r.body) {
			t.Errorf("request %d is %q, want number %d, operation %d and %q", i, got, i+1, r.op, r.body)
		}
	}
	server.says(numbered(1, 5, 0), numbered(2, 6, -101))
	eventually.True(t, "the answers are read", func() bool { return zxidOf(ss) == 6 })
	server.Close()
	a := <-answers
	if a[0].Err != nil || a[0].zxid != 5 || !errors.Is(a[1].Err, ErrNoNode) || !errors.Is(a[2].Err, ErrLost) {
		t.Errorf("answers: %+v, want one by 5, none for a missing node, and the third lost", a)
	}
}

func zxidOf(ss *Session) int64 {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.zxid
}

// A server that takes nothing, such as one whose process is stopped, holds up no caller for longer
// than its context lasts.
func TestServerThatTakesNothing(t *testing.T) {
	ours, theirs := sockets(t)
	defer theirs.Close()
	for _, err := range []error{ours.(*net.TCPConn).SetWriteBuffer(8 << 10), theirs.(*net.TCPConn).SetReadBuffer(8 << 10)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ss := startless(t, Options{Base: "/"})
	c := &conn{Conn: ours, session: ss, in: bufio.NewReader(ours)}
	ss.begin(c, handshake{id: 77}, exchange{})
	defer func() { c.Close(); <-c.gone }()
	ctx, cancel := context.WithCancel(t.Context())
	begin, returned := make(chan struct{}), make(chan struct{})
	const callers = 500
	long := "/" + strings.Repeat("a", 3000) // all together more than a socket has room for
	for range callers {
		go func() {
			<-begin
			_, _ = ss.Once(ctx, List(long))
			returned <- struct{}{}
		}()
	}
	close(begin)
	eventually.True(t, "all have asked", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.sent) == callers
	})
	cancel()
	for range callers {
		select {
		case <-returned:
		case <-time.After(patience):
			t.Fatal("a caller waits for a server that takes nothing, although its context has ended")
		}
	}
}

// An answer to another request than the next one breaks the connection.
func TestAnswerToNothing(t *testing.T) {
	ss, c, server := over(t)
	answers := sends(t, ss, List("/a"))
	server.gets()
	server.says(numbered(2, 5, 0))
	if a := <-answers; !Broken(a[0].Err) {
		t.Errorf("answer: %+v, want a lost one", a)
	}
	<-c.gone
	if err := ss.Reason(); !errors.Is(err, errStrange) {
		t.Errorf("no connection, because: %v, want %v", err, errStrange)
	}
}

// If the session has moved to another connection, there is a new one before anybody asks again.
func TestSessionHasMoved(t *testing.T) {
	ss, c, server := over(t)
	answers := sends(t, ss, Delete("/a", AnyVersion))
	server.gets()
	server.says(numbered(1, 5, -118))
	if a := <-answers; !Broken(a[0].Err) || ss.conn != nil {
		t.Errorf("answer: %+v on connection %p, want a lost one, and none", a, ss.conn)
	}
	<-c.gone
}

// watchedIn returns how many nodes a session watches.
func watchedIn(ss *Session) int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return len(ss.watches)
}

func hasEnded(w *Watch) bool {
	select {
	case <-w.Over:
		return true
	default:
		return false
	}
}

// All watches of a node end with its first change, and only those.
func TestWatchesEndWithAChange(t *testing.T) {
	ss, _, server := over(t)
	one, two, other, stopped := WatchNode("/a"), WatchList("/a"), WatchNode("/b"), WatchNode("/c")
	answers := sends(t, ss, one.Request(), two.Request(), other.Request(), stopped.Request())
	for range 4 {
		server.gets()
	}
	stopped.Stop()
	server.says(numbered(1, 5, 0), numbered(2, 5, 0), numbered(3, 5, 0), change(eventDeleted, "/a"), change(eventDeleted, "/c"), numbered(4, 5, 0))
	<-answers
	if !hasEnded(one) || !hasEnded(two) || hasEnded(other) || hasEnded(stopped) {
		t.Errorf("watches of /a: %t, %t, of /b: %t, stopped: %t, want those of /a to have ended", hasEnded(one), hasEnded(two), hasEnded(other), hasEnded(stopped))
	}
	if !one.Deleted || !two.Deleted || other.Deleted {
		t.Errorf("/a is deleted: %t, %t, /b: %t, want /a only", one.Deleted, two.Deleted, other.Deleted)
	}
	server.says(change(3, "/b"))
	<-other.Over
	if other.Deleted || watchedIn(ss) != 0 {
		t.Errorf("a change of data: deleted %t, and %d nodes are watched, want neither", other.Deleted, watchedIn(ss))
	}
}

// A watch of a node is set again on the next connection, before anything else is asked there. Others end
// with the connection, and so do those that are set afterwards. Stopping them changes nothing.
func TestWatchesAndConnections(t *testing.T) {
	ss, c, server := over(t)
	kept, list, exists, stopped, late := WatchNode("/a"), WatchList("/a"), WatchExists("/b"), WatchNode("/c"), WatchNode("/a")
	answers := sends(t, ss, kept.Request(), list.Request(), exists.Request(), stopped.Request())
	for range 4 {
		server.gets()
	}
	server.says(numbered(1, 7, 0), numbered(2, 7, 0), numbered(3, 7, 0), numbered(4, 7, 0))
	<-answers
	stopped.Stop()
	server.Close()
	<-c.gone
	if b := c.ask(late.Request()); !errors.Is(b.answers[0].Err, ErrLost) || !hasEnded(late) {
		t.Errorf("set after the connection: %t (%v), want it to have ended", hasEnded(late), b.answers[0].Err)
	}
	if hasEnded(kept) || !hasEnded(list) || !hasEnded(exists) {
		t.Errorf("a watch of a node has ended: %t, others: %t, %t, want the others to have ended", hasEnded(kept), hasEnded(list), hasEnded(exists))
	}
	c, server = another(t, ss)
	if got, want := server.gets()[4:], slices.Concat(appendInt(nil, opSetWatches), watchAgain(7, []string{"/a"}).body); !slices.Equal(got, want) {
		t.Errorf("the first request is %q, want %q", got, want)
	}
	server.says(numbered(1, 9, 0))
	server.says(change(eventDeleted, "/a"))
	<-kept.Over
	if kept.Deleted || zxidOf(ss) != 7 {
		t.Errorf("deleted: %t, want no order of changes between two connections; and the zxid is %d, want 7", kept.Deleted, zxidOf(ss))
	}
	refused := WatchNode("/d")
	answers = sends(t, ss, refused.Request())
	server.gets()
	server.says(numbered(2, 9, 0))
	<-answers
	server.Close()
	<-c.gone
	_, server = another(t, ss)
	server.gets()
	server.says(numbered(1, 9, -6))
	<-refused.Over
	for _, w := range []*Watch{kept, list, late, refused} {
		w.Stop()
	}
	if n := watchedIn(ss); n != 0 {
		t.Errorf("%d nodes are watched, want none", n)
	}
}

// Servers take no request of more than a megabyte, so that many long paths take several.
func TestManyLongPathsAreWatchedAgain(t *testing.T) {
	ss := startless(t, Options{Base: "/"})
	const paths = 500
	for i := range paths {
		ss.watch(WatchNode(fmt.Sprintf("/%d%s", i, strings.Repeat("%E4", 1024))))
	}
	_, server := another(t, ss)
	for again := 0; again < paths; {
		got := server.gets()
		if op := int32(binary.BigEndian.Uint32(got[4:])); op != opSetWatches {
			t.Fatalf("request %d after %d paths, want the others to be watched again", op, again)
		}
		again += int(binary.BigEndian.Uint32(got[16:]))
	}
}

// A write proves nothing once there is another connection: a caller that still waits for the proof asks
// for another write.
func TestProofAfterAnotherConnection(t *testing.T) {
	ss := startless(t, Options{Base: "/"})
	now := ss.pool.o.Clock.Now()
	written := slices.Concat(numbered(1, 5, 0), multiHeader(multiHeader(nil, opCheck, 0), -1, 1))
	c, server := anotherAt(t, ss, now.Add(-time.Hour)) // the leader has not told of the session since
	proven := make(chan error, 1)
	go func() {
		at, err := ss.Prove(t.Context(), now)
		if err == nil && at < now {
			err = fmt.Errorf("proven at %v, want %v or later", at, now)
		}
		proven <- err
	}()
	server.gets()
	server.says(written)
	eventually.True(t, "the caller waits for the proof", func() bool {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		return ss.contact.written >= now && ss.changed != nil
	})
	server.Close()
	<-c.gone
	_, server = anotherAt(t, ss, ss.pool.o.Clock.Now())
	server.gets()
	server.says(written)
	if err := <-proven; err != nil {
		t.Error(err)
	}
}

// The request of a watch asks for it.
func TestRequestsOfWatches(t *testing.T) {
	for op, of := range map[int32]*Watch{opGetData: WatchNode("/a"), opGetChildren2: WatchList("/a"), opExists: WatchExists("/a")} {
		if r := of.Request(); r.op != op || !slices.Equal(r.body, []byte{0, 0, 0, 2, '/', 'a', 1}) {
			t.Errorf("the request %d is %q, want %d with a watch", r.op, r.body, op)
		}
	}
}

// serves returns the address of a server that handles connections one after the other.
func serves(t *testing.T, handle ...func(s server)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, h := range handle {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h(newServer(t, c))
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// greets answers a handshake, which it returns.
func (s server) greets(id int64, timeout time.Duration) []byte {
	h := s.gets()
	s.welcomes(id, timeout)
	return h
}

func (s server) welcomes(id int64, timeout time.Duration) {
	s.says(appendBytes(appendLong(appendInt(appendInt(nil, 0), int32(timeout.Milliseconds())), id), "a word of sixteen"[:passwordSize]))
}

// The servers can end a session in their answer to a handshake, and a session that has ended keeps
// its reason.
func TestServersEndTheSession(t *testing.T) {
	for name, c := range map[string]struct {
		id      int64
		granted time.Duration
		over    bool // the error matches ErrOver
	}{
		"session unknown":   {0, 0, true},
		"timeout cut short": {7, time.Second, false},
	} {
		ss := startless(t, Options{Servers: []string{serves(t, func(s server) { s.greets(c.id, c.granted) })}})
		ss.id = 7
		ss.run()
		if err := ss.Reason(); err == nil || errors.Is(err, ErrOver) != c.over {
			t.Errorf("%s: the reason is %v", name, err)
		}
		why := ss.Reason()
		ss.finish(errors.New("another reason"))
		if _, err := ss.Once(t.Context(), List("/")); err != why {
			t.Errorf("%s: a request fails with %v, want %v", name, err, why)
		}
	}
}

// A server learns the identities before any other request. On the next connection the session goes
// on, with its password and with what it has seen.
func TestSessionGoesOn(t *testing.T) {
	var second []byte
	addr := serves(t, func(s server) {
		if h := s.greets(77, time.Hour); !slices.Equal(h[:12], make([]byte, 12)) || !slices.Equal(h[16:24], make([]byte, 8)) {
			t.Errorf("the first handshake is %q, want one without a session", h)
		}
		if auth := s.gets(); int32(binary.BigEndian.Uint32(auth[4:])) != opAuth || string(auth[len(auth)-4:]) != "me:x" {
			t.Errorf("the first request is %q, want the identity", auth)
		}
		s.says(numbered(authXid, 0, 0))
		if touch := s.gets(); binary.BigEndian.Uint32(touch[4:]) != opSync {
			t.Errorf("the next request is %q, want a sync", touch)
		}
		s.says(numbered(1, 41, 0))
	}, func(s server) {
		second = s.greets(77, time.Hour)
		s.gets()
		s.says(numbered(authXid, 0, -115))
	})
	ss := startless(t, Options{Servers: []string{addr}, Base: "/", Auth: []Identity{{"digest", "me:x"}}})
	ss.run() // until the identity is refused
	if err := ss.Reason(); !errors.Is(err, ErrAuthFailed) {
		t.Errorf("the session has ended with %v, want %v", err, ErrAuthFailed)
	}
	want := slices.Concat(appendLong(appendInt(nil, 0), 41), appendInt(nil, int32(ss.timeout.Milliseconds())), appendLong(nil, 77), str("a word of sixteen"[:passwordSize]))
	if !slices.Equal(second, want) {
		t.Errorf("the second handshake is %q, want %q", second, want)
	}
}

// A server that has been silent for too long is left, while the session goes on.
func TestSilentServerIsLeft(t *testing.T) {
	ss, c, server := over(t)
	go io.Copy(io.Discard, server)
	ss.timeout, ss.pool.o.Limits.Tick = time.Millisecond, 3*time.Millisecond
	ss.serve(c)
	if ss.Ended() || ss.Reason() == nil {
		t.Errorf("ended: %t, because %v, want another connection, and why", ss.Ended(), ss.Reason())
	}
}

// A password is sent as the server gave it, whatever its length.
func TestPasswordOfAnyLength(t *testing.T) {
	for _, word := range [][]byte{[]byte("short"), []byte("longer than sixteen bytes")} {
		ours, theirs := net.Pipe()
		s := newServer(t, theirs)
		got := make(chan []byte, 1)
		go func() { got <- s.greets(7, time.Hour)[24:] }()
		if _, err := greet(ours, bufio.NewReader(ours), 0, handshake{id: 7, password: word}); err != nil {
			t.Error(err)
		}
		if sent := <-got; !slices.Equal(sent, appendBytes(nil, word)) {
			t.Errorf("the password %q is sent as %q", word, sent)
		}
		ours.Close()
		theirs.Close()
	}
}

// A server that answers with no session, or with one that lasts for no time, is no ZooKeeper: there
// are no limits to count with.
func TestLimitsOfAStranger(t *testing.T) {
	for name, of := range map[string]handshake{"no session": {}, "no time": {id: 7}} {
		addr := serves(t, func(s server) { s.greets(of.id, of.timeout) })
		if l, err := AskLimits(t.Context(), addr); !errors.Is(err, ErrStranger) {
			t.Errorf("%s: limits %+v, %v, want %v", name, l, err, ErrStranger)
		}
	}
}

// Connections that break as soon as they are made count as failures, after which a session pauses. The
// first one that lasts is a success.
func TestConnectionsThatDoNotLast(t *testing.T) {
	breaks := func(s server) { s.greets(7, time.Hour) }
	lasts := func(s server) {
		s.greets(7, time.Hour)
		for xid := int32(1); xid <= 2; xid++ { // the second touch is sent a while after the first
			s.gets()
			s.says(numbered(xid, 5, 0))
		}
	}
	ends := func(s server) { s.greets(0, 0) }
	for name, c := range map[string]struct {
		handle []func(server)
		want   int
	}{
		"three break":            {[]func(server){breaks, breaks, breaks, ends}, 4},
		"three break, one lasts": {[]func(server){breaks, breaks, breaks, lasts, ends}, 1},
	} {
		ss := startless(t, Options{Servers: []string{serves(t, c.handle...)}})
		ss.pool.o.Limits.Tick = 30 * time.Millisecond
		if ss.run(); ss.dials != c.want {
			t.Errorf("%s: %d attempts without success, want %d", name, ss.dials, c.want)
		}
	}
}

// Servers whose data were restored to an earlier state refuse a session that has seen a later one, and
// do not say why. The session is over if it had no connection for its whole timeout, and they serve others.
func TestServersHaveAnEarlierState(t *testing.T) {
	serve := func(s server) {
		h := s.gets()
		switch {
		case binary.BigEndian.Uint64(h[16:]) != 0: // refused
		default:
			s.welcomes(7, time.Hour)
			_, _ = readPacket(s.in, 1<<10) // a touch, or the end of a session that was to show that others are served
		}
	}
	ss := startless(t, Options{Servers: []string{serves(t, slices.Repeat([]func(server){serve}, 1000)...)}})
	ss.timeout = 600 * time.Millisecond
	ss.run()
	if err := ss.Reason(); !errors.Is(err, errEarlier) || !errors.Is(err, ErrOver) {
		t.Errorf("the session has ended with %v, want %v", err, errEarlier)
	}
}

// Requests are numbered from 1 again after the largest number.
func TestNumbersBeginAgain(t *testing.T) {
	ss, c, server := over(t)
	c.xid = math.MaxInt32 - 1
	answers := sends(t, ss, List("/a"), List("/b"))
	for _, want := range []int32{math.MaxInt32, 1} {
		if got := int32(binary.BigEndian.Uint32(server.gets())); got != want {
			t.Errorf("a request has the number %d, want %d", got, want)
		}
	}
	server.says(numbered(math.MaxInt32, 5, -101), numbered(1, 5, -101))
	for _, a := range <-answers {
		if !errors.Is(a.Err, ErrNoNode) {
			t.Errorf("answer: %+v, want none for a missing node", a)
		}
	}
}

// Messages with a length that no answer has break the connection, and are not read.
func TestLengthsOfNoAnswer(t *testing.T) {
	for _, length := range []int32{-1, math.MinInt32, math.MaxInt32, mostAnswer + 1} {
		ss, c, server := over(t)
		answers := sends(t, ss, List("/a"))
		server.gets()
		if _, err := server.Write(appendInt(nil, length)); err != nil {
			t.Error(err)
		}
		<-c.gone
		if a := <-answers; !errors.Is(a[0].Err, ErrLost) || !errors.Is(ss.Reason(), errTooLong) {
			t.Errorf("length %d: answer %+v, no connection because of %v, want a lost one, because of %v", length, a, ss.Reason(), errTooLong)
		}
	}
}

// FuzzAnswers has answers of any content read in every way.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 'a'})
	f.Add(appendInt(numbered(1, 5, 0), -2))
	f.Add(change(eventDeleted, "/a"))
	f.Add(append(appendInt(nil, math.MaxInt32), make([]byte, statSize)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		a := Answer{body: b}
		for _, err := range []error{
			func() error { _, _, err := a.Names(); return err }(),
			func() error { _, _, err := a.Node(); return err }(),
			func() error { _, _, err := a.Created(); return err }(),
			func() error { _, err := a.ACL(); return err }(),
		} {
			if err != nil && !Broken(err) {
				t.Errorf("%q is read with %v, want an unknown outcome", b, err)
			}
		}
		if parts, err := a.Each(2); err == nil && len(parts) != 2 {
			t.Errorf("%q is read as %d parts, want 2", b, len(parts))
		}
		ss := NewPool(Options{Clock: clock.System()}).newSession(time.Minute)
		defer ss.finish(errClosed)
		c := &conn{session: ss, sent: []pending{{xid: 1, op: opMulti, batch: &batch{make([]Answer, 1), make(chan struct{})}}}}
		_ = c.take(b)
	})
}
