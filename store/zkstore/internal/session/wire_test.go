package session

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// packet returns fields with their length before them, as the protocol has them.
func packet(fields ...any) []byte {
	var b bytes.Buffer
	for _, f := range fields {
		binary.Write(&b, binary.BigEndian, f)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(b.Len())), b.Bytes()...)
}

// end is the other end of a wire: a server of a few packets.
type end struct {
	t *testing.T
	net.Conn
}

// over returns a wire of the link and its other end.
func over(t *testing.T, l *link) (*wire, end) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return newWire(ours, l), end{t, theirs}
}

// request writes a request on the wire and returns what the server gets.
func (e end) request(w *wire, p []byte) []byte {
	e.t.Helper()
	got, sent := make([]byte, len(p)), make(chan error, 1)
	go func() {
		_, err := w.Write(p)
		sent <- err
	}()
	if _, err := io.ReadFull(e.Conn, got); err != nil {
		e.t.Fatal(err)
	}
	if err := <-sent; err != nil {
		e.t.Fatal(err)
	}
	return got
}

// answer writes an answer and returns what the library reads.
func (e end) answer(w *wire, p []byte) []byte {
	e.t.Helper()
	go e.Write(p)
	got := make([]byte, len(p))
	if _, err := io.ReadFull(w, got); err != nil {
		e.t.Fatal(err)
	}
	return got
}

// A new server is told the zxid up to which the session has seen the watches of the old
// one, however quickly answers of the new one come.
func TestWatchesGoOnWhereTheyEnded(t *testing.T) {
	l := &link{clock: clock.System(), timeout: 1}
	const version, noZxid, session, other = int32(0), int64(0), int64(77), int32(9)
	connect := packet(version, noZxid, int32(1000), session, make([]byte, 20))
	welcome := packet(version, int32(1000), session, make([]byte, 20))
	zxidIn := func(p []byte, at int) int64 { return int64(binary.BigEndian.Uint64(p[at:])) }

	w, server := over(t, l)
	if got := zxidIn(server.request(w, connect), 8); got != 0 {
		t.Errorf("the first connection begins at zxid %d, want 0", got)
	}
	server.answer(w, welcome)
	server.request(w, packet(int32(1), other))
	if got := zxidIn(server.answer(w, packet(int32(1), int64(41), int32(0))), 8); got != 0 {
		t.Errorf("the library gets zxid %d, want none", got)
	}

	w, server = over(t, l)
	if got := zxidIn(server.request(w, connect), 8); got != 41 {
		t.Errorf("the second connection begins at zxid %d, want 41", got)
	}
	server.answer(w, welcome)
	second := server.request(w, packet(int32(2), other))
	server.answer(w, packet(binary.BigEndian.Uint32(second[4:]), int64(50), int32(0))) // before the watches
	watches := packet(int32(3), int32(opSetWatches), noZxid, int32(0), int32(0), int32(0))
	if got := zxidIn(server.request(w, watches), 12); got != 41 {
		t.Errorf("the watches are set from zxid %d, want 41", got)
	}
	if w, _ := over(t, l); w.before != 50 {
		t.Errorf("the third connection begins at zxid %d, want 50", w.before)
	}
}

// Requests of the session leave together, among those of the library, which gets its own
// answers only. Those that are not answered when the connection breaks are lost.
func TestRequestsAmongThoseOfTheLibrary(t *testing.T) {
	s := &Session{link: &link{clock: clock.System(), timeout: 1}}
	w, server := over(t, s.link)
	s.link.wire = w
	server.request(w, packet(int32(0), int64(0), int32(1000), int64(0), make([]byte, 20)))
	server.answer(w, packet(int32(0), int32(1000), int64(77), make([]byte, 20)))
	requests := []Request{Delete("/a"), List("/b"), List("/c")}
	sent := make(chan *Batch)
	go func() {
		b, err := s.Send(t.Context(), requests...)
		if err != nil {
			t.Error(err)
		}
		sent <- b
	}()
	got := make([]byte, 3*12+len(requests[0].body)+2*len(requests[1].body))
	if _, err := io.ReadFull(server, got); err != nil {
		t.Fatal(err)
	}
	b := <-sent
	const other = int32(9)
	lib := server.request(w, packet(int32(1), other))
	number := func(p []byte) uint32 { return binary.BigEndian.Uint32(p[4:]) }
	if number(lib) == number(got) {
		t.Fatalf("two requests have the number %d", number(lib))
	}
	go func() {
		server.Write(packet(number(got), int64(5), int32(0)))
		server.Write(packet(number(got)+1, int64(5), int32(0), int32(0)))
		server.Write(packet(number(lib), int64(6), int32(0)))
	}()
	answer := make([]byte, 20)
	if _, err := io.ReadFull(w, answer); err != nil || number(answer) != 1 {
		t.Fatalf("the library gets the answer to %d (%v), want 1", number(answer), err)
	}
	server.Close()
	if _, err := w.Read(answer); err == nil {
		t.Fatal("the library reads on after the server closed the connection")
	}
	answers, err := b.Wait(t.Context())
	if err != nil || answers[0].Err != nil || answers[1].Err != nil || !Broken(answers[2].Err) {
		t.Errorf("answers: %+v, %v, want two, and the third lost", answers, err)
	}
	if answers[0].zxid != 5 {
		t.Errorf("the zxid is %d, want 5", answers[0].zxid)
	}
}

// A server that does not know the session's identities yet gets no request of locks.
func TestIdentitiesComeFirst(t *testing.T) {
	s := &Session{link: &link{clock: clock.System(), timeout: 1, auths: 1}}
	w, server := over(t, s.link)
	s.link.wire = w
	server.request(w, packet(int32(0), int64(0), int32(1000), int64(0), make([]byte, 20)))
	server.answer(w, packet(int32(0), int32(1000), int64(77), make([]byte, 20)))
	go s.Send(t.Context(), List("/b"))
	if got := server.request(w, packet(int32(1), int32(opAuth))); binary.BigEndian.Uint32(got[8:]) != opAuth {
		t.Fatalf("the first request is %x, want the identity", got)
	}
	first := make([]byte, 12)
	if _, err := io.ReadFull(server, first); err != nil || binary.BigEndian.Uint32(first[8:]) != opGetChildren2 {
		t.Fatalf("the second request is %x (%v), want the list", first, err)
	}
}
