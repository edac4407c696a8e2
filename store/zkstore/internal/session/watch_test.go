package session

import (
	"encoding/binary"
	"io"
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// watching returns a session on a connection, and the server's end of it.
func watching(t *testing.T) (*Session, *wire, end) {
	s := &Session{link: &link{clock: clock.System(), timeout: 1}}
	w, server := over(t, s.link)
	s.link.wire = w
	server.request(w, packet(int32(0), int64(0), int32(1000), int64(0), make([]byte, 20)))
	server.answer(w, packet(int32(0), int32(1000), int64(77), make([]byte, 20)))
	return s, w, server
}

// set sends the request of a watch, which the server reads.
func (e end) set(s *Session, of *Watch) {
	e.t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := s.Send(e.t.Context(), of.Request())
		done <- err
	}()
	if _, err := io.ReadFull(e.Conn, make([]byte, 12+len(of.ask.body))); err != nil {
		e.t.Fatal(err)
	}
	if err := <-done; err != nil {
		e.t.Fatal(err)
	}
}

// announcementOf is what a server sends when the node with that path is deleted.
func announcementOf(path string) []byte {
	const deleted, connected = int32(2), int32(3)
	return packet(int32(announcement), int64(-1), int32(0), deleted, connected, int32(len(path)), []byte(path))
}

func ended(w *Watch) bool {
	select {
	case <-w.Over:
		return true
	default:
		return false
	}
}

// All watches of a node end with its first change, and only those. The library is told of
// other nodes, and of those whose watches were stopped.
func TestWatchesEndWithAChange(t *testing.T) {
	s, w, server := watching(t)
	one, two, other, stopped := WatchNode("/a"), WatchList("/a"), WatchNode("/b"), WatchNode("/c")
	for _, of := range []*Watch{one, two, other, stopped} {
		server.set(s, of)
	}
	stopped.Stop()
	go func() {
		server.Write(announcementOf("/a"))
		server.Write(announcementOf("/c"))
	}()
	want := announcementOf("/c")
	got := make([]byte, len(want))
	if _, err := io.ReadFull(w, got); err != nil || string(got) != string(want) {
		t.Errorf("the library reads %q (%v), want the change of /c only", got, err)
	}
	if !ended(one) || !ended(two) || ended(other) || ended(stopped) {
		t.Errorf("watches of /a: %t, %t, of /b: %t, stopped: %t, want those of /a to have ended", ended(one), ended(two), ended(other), ended(stopped))
	}
	if !one.Deleted || !two.Deleted || other.Deleted {
		t.Errorf("/a is deleted: %t, %t, /b: %t, want /a only", one.Deleted, two.Deleted, other.Deleted)
	}
	changed := announcementOf("/b")
	changed[len(changed)-13] = 3
	go server.Write(slices.Concat(changed, want))
	if _, err := io.ReadFull(w, got); err != nil || !ended(other) || other.Deleted {
		t.Errorf("a change of data (%v): over %t, deleted %t, want over and not deleted", err, ended(other), other.Deleted)
	}
	server.set(s, WatchNode("/d"))
	if len(w.watches) != 1 {
		t.Errorf("%d nodes are watched, want /d", len(w.watches))
	}
}

// Watches end with the connection, and so do those that are set afterwards. Stopping them
// changes nothing.
func TestWatchesEndWithTheConnection(t *testing.T) {
	s, w, server := watching(t)
	early, late := WatchNode("/a"), WatchNode("/a")
	server.set(s, early)
	server.Close()
	if _, err := w.Read(make([]byte, 1)); err == nil {
		t.Fatal("the connection goes on")
	}
	w.ask(&Batch{done: make(chan struct{})}, []Request{late.Request()})
	if !ended(early) || !ended(late) {
		t.Errorf("set before: %t, set after: %t, want both to have ended", ended(early), ended(late))
	}
	early.Stop()
	late.Stop()
}

// The request of a watch asks for it.
func TestRequestsOfWatches(t *testing.T) {
	for op, of := range map[int32]*Watch{opGetData: WatchNode("/a"), opGetChildren2: WatchList("/a")} {
		b := of.Request().body
		if of.Request().op != op || binary.BigEndian.Uint32(b) != 2 || string(b[4:6]) != "/a" || len(b) != 7 || b[6] != 1 {
			t.Errorf("the request %d is %q, want %d with a watch", of.Request().op, b, op)
		}
	}
}
