package session

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

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

// Requests that follow a change leave when it is announced, and the watch ends with their answers.
func TestRequestsFollowAChange(t *testing.T) {
	s, w, server := watching(t)
	of := WatchNode("/a").Then(List("/"), Read("/b"))
	server.SetDeadline(time.Now().Add(time.Minute))
	server.set(s, of)
	other := announcementOf("/none") // for the library, which reads it in the end
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(w, make([]byte, len(other)))
		read <- err
	}()
	server.Write(announcementOf("/a"))
	sent := make([]byte, 24+len(List("/").body)+len(Read("/b").body))
	if _, err := io.ReadFull(server.Conn, sent); err != nil {
		t.Fatal(err)
	}
	if ended(of) {
		t.Error("the watch has ended before the requests are answered")
	}
	for _, request := range [][]byte{sent, sent[12+len(List("/").body):]} {
		server.Write(packet(int32(binary.BigEndian.Uint32(request[4:])), int64(0), int32(-101)))
	}
	server.Write(other)
	if err := <-read; err != nil || !ended(of) || !of.Deleted {
		t.Fatalf("%v; over: %v, deleted: %v, want both", err, ended(of), of.Deleted)
	}
	if answers, _ := of.Followed(); len(answers) != 2 || !errors.Is(answers[0].Err, zk.ErrNoNode) || !errors.Is(answers[1].Err, zk.ErrNoNode) {
		t.Errorf("the answers are %+v, want two", answers)
	}
}

// If the connection breaks before the answers come, the watch ends, and the answers are lost. If
// it breaks before the change is announced, there are none.
func TestConnectionBreaksBeforeWhatFollows(t *testing.T) {
	s, w, server := watching(t)
	told, silent := WatchNode("/a").Then(List("/")), WatchNode("/b").Then(List("/"))
	server.SetDeadline(time.Now().Add(time.Minute))
	server.set(s, told)
	server.set(s, silent)
	read := make(chan error, 1)
	go func() {
		_, err := w.Read(make([]byte, 1))
		read <- err
	}()
	server.Write(announcementOf("/a"))
	if _, err := io.ReadFull(server.Conn, make([]byte, 12+len(List("/").body))); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if err := <-read; err == nil || !ended(told) || !ended(silent) {
		t.Fatalf("%v; over: %v and %v, want both", err, ended(told), ended(silent))
	}
	if answers, _ := told.Followed(); len(answers) != 1 || !Broken(answers[0].Err) {
		t.Errorf("the answers to what followed are %+v, want a lost one", answers)
	}
	if answers, _ := silent.Followed(); answers != nil {
		t.Errorf("the answers are %+v, want none: no change was announced", answers)
	}
}
