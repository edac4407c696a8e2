//go:build unix

package filestore

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A process that holds or waits has two files in the folder of sessions: one with a random name,
// on which it has a flock for as long as it lives, and a pipe, its bell, which others ring.
// The kernel ends the flock with the process, whatever ends that. A command that runs under a
// lock inherits it, so that the lease lasts if only the command lives on.
//
// A process that closes the store removes its file. The file of one that has ended stays for a
// day, renamed, so that others can tell the two apart.

const (
	// pushes reports whether processes can ring each other.
	pushes = true

	bellSuffix = ".bell"
	deadSuffix = ".dead"
	newPrefix  = "new-"
	nameLength = 16
	// lastingMark begins the names of processes whose leases last for their TTL, whatever
	// becomes of the process. It is no digit of rand.Text.
	lastingMark = '0'
)

// peers are the processes that use a folder.
type peers struct {
	dir  string
	mode fs.FileMode
	hear func(message string)
	log  *slog.Logger
	last bool // leases of this process last for their TTL; see Options.Lasting

	own atomic.Pointer[session]

	mu     sync.Mutex
	retry  time.Time // when to try to open a session again
	closed bool
	old    []*session // whose files somebody has removed
	known  map[string]*peer
	ended  map[string]bool
}

// session is what the others see of this process.
type session struct {
	name string
	lock *os.File // with the flock
	bell *os.File // the pipe
	done chan struct{}
	seen time.Time // the file was there
}

// peer is another process.
type peer struct{ lock, bell int } // descriptors, or -1

// maxKnown is for how many processes descriptors are kept.
const maxKnown = 256

func newPeers(dir string, mode fs.FileMode, last bool, hear func(string), log *slog.Logger) *peers {
	return &peers{dir: dir, mode: mode, last: last, hear: hear, log: log, known: map[string]*peer{}, ended: map[string]bool{}}
}

// Session returns the name of this process, or "" if it can have none.
func (p *peers) Session() string {
	if s := p.own.Load(); s != nil && time.Since(s.seen) < time.Second {
		return s.name
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if s := p.own.Load(); s != nil {
		if now.Sub(s.seen) < time.Second {
			return s.name
		}
		if _, err := look(filepath.Join(p.dir, s.name)); err == nil {
			again := *s
			again.seen = now
			p.own.Store(&again)
			return s.name
		}
		p.old = append(p.old, s)
		p.own.Store(nil)
	}
	if p.closed || now.Before(p.retry) {
		return ""
	}
	s, err := p.open()
	if err != nil {
		p.retry = now.Add(time.Minute)
		p.log.Info("cannot make a session beside the locks: waiters will poll, and the locks of this process last for their TTL if it ends", "dir", p.dir, "err", err)
		return ""
	}
	p.own.Store(s)
	return s.name
}

// open makes a session.
func (p *peers) open() (_ *session, err error) {
	p.clean()
	s := &session{name: strings.ToLower(rand.Text()[:nameLength]), done: make(chan struct{}), seen: time.Now()}
	if p.last {
		s.name = string(lastingMark) + s.name[1:]
	}
	path := filepath.Join(p.dir, s.name)
	temp := filepath.Join(p.dir, newPrefix+s.name)
	if s.lock, err = os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp)
			_ = os.Remove(path + bellSuffix)
			_ = s.lock.Close()
		}
	}()
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, err
	}
	if err := unix.Mkfifo(path+bellSuffix, 0o600); err != nil {
		return nil, &fs.PathError{Op: "mkfifo", Path: path + bellSuffix, Err: err}
	}
	if p.mode != 0o600 {
		if err := errors.Join(s.lock.Chmod(p.mode), os.Chmod(path+bellSuffix, p.mode)); err != nil {
			return nil, err
		}
	}
	fd, err := unix.Open(path+bellSuffix, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path + bellSuffix, Err: err}
	}
	s.bell = os.NewFile(uintptr(fd), path+bellSuffix)
	if err := os.Rename(temp, path); err != nil {
		return nil, errors.Join(err, s.bell.Close())
	}
	go p.listen(s)
	return s, nil
}

// listen takes in what others ring.
func (p *peers) listen(s *session) {
	defer close(s.done)
	r := bufio.NewReader(s.bell)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		p.hear(line[:len(line)-1])
	}
}

// isName reports whether a name can be that of a session. Anybody who shares the folder may
// have written it.
func isName(name string) bool {
	const digits = "abcdefghijklmnopqrstuvwxyz234567" // of rand.Text
	return len(name) == nameLength && strings.Trim(strings.TrimPrefix(name, string(lastingMark)), digits) == ""
}

// Ended reports whether the process with a session has ended without closing the store, so
// that its leases are over.
func (p *peers) Ended(name string) bool {
	return name != "" && name[0] != lastingMark && p.isGone(name)
}

// isGone reports whether the process with a session has ended without closing the store.
func (p *peers) isGone(name string) bool {
	if !isName(name) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endedLocked(name)
}

func (p *peers) endedLocked(name string) bool {
	if p.ended[name] {
		return true
	}
	if s := p.own.Load(); p.closed || s != nil && s.name == name {
		return false
	}
	k := p.peerLocked(name)
	if k.lock < 0 {
		fd, err := unix.Open(filepath.Join(p.dir, name), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			if _, gone := look(filepath.Join(p.dir, name+deadSuffix)); gone == nil {
				p.endLocked(name)
				return true
			}
			return false // it may have closed the store
		}
		k.lock = fd
	}
	if unix.Flock(k.lock, unix.LOCK_SH|unix.LOCK_NB) != nil {
		return false
	}
	var st unix.Stat_t
	closed := unix.Fstat(k.lock, &st) != nil || st.Nlink == 0
	p.forgetLocked(name) // with the flock that this process got
	if closed {
		return false
	}
	p.endLocked(name)
	return true
}

// endLocked notes that a process has ended.
func (p *peers) endLocked(name string) {
	if len(p.ended) > 4*maxKnown {
		clear(p.ended)
	}
	p.ended[name] = true
	p.forgetLocked(name)
}

// peerLocked returns what is known of a process.
func (p *peers) peerLocked(name string) *peer {
	k := p.known[name]
	if k == nil {
		if len(p.known) >= maxKnown {
			for other := range p.known {
				p.forgetLocked(other)
				break
			}
		}
		k = &peer{-1, -1}
		p.known[name] = k
	}
	return k
}

func (p *peers) forgetLocked(name string) {
	if k := p.known[name]; k != nil {
		for _, fd := range []int{k.lock, k.bell} {
			if fd >= 0 {
				_ = unix.Close(fd)
			}
		}
		delete(p.known, name)
	}
}

// ring sends a message to a process. It does not block: a message that a bell has no room for
// is lost.
func (p *peers) ring(name, message string) {
	if !isName(name) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.own.Load(); p.closed || s != nil && s.name == name {
		return
	}
	k := p.peerLocked(name)
	for range 2 {
		if k.bell < 0 {
			fd, err := unix.Open(filepath.Join(p.dir, name+bellSuffix), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
			if err != nil {
				return
			}
			var st unix.Stat_t
			if k.bell = fd; unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
				p.forgetLocked(name)
				return
			}
		}
		_, err := unix.Write(k.bell, []byte(message+"\n"))
		if !errors.Is(err, unix.EPIPE) {
			return
		}
		_ = unix.Close(k.bell) // the pipe may have been made anew
		k.bell = -1
	}
}

// ringAll sends a message to all other processes.
func (p *peers) ringAll(message string) {
	names, _ := readNames(p.dir) // nobody has a session if it is missing
	for _, name := range names {
		if base, ok := strings.CutSuffix(name, bellSuffix); ok {
			p.ring(base, message)
		}
	}
}

// A session's file says which log its process has seen, and how much of it.
const noteSize = 32

func (p *peers) mark(gen uint64, id fileID, size int64) {
	s := p.own.Load()
	if s == nil {
		return
	}
	var note [noteSize]byte
	le := binary.LittleEndian
	le.PutUint64(note[:], gen)
	le.PutUint64(note[8:], id.dev)
	le.PutUint64(note[16:], id.ino)
	le.PutUint64(note[24:], uint64(size))
	_, _ = unix.Pwrite(int(s.lock.Fd()), note[:], 0)
}

// seen implements others.
func (p *peers) seen(gen uint64, id fileID) (most int64, err error) {
	names, err := readNames(p.dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if !isName(name) || p.isGone(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil || len(text) < noteSize {
			continue // it has just been closed, or has seen nothing
		}
		le := binary.LittleEndian
		g, file, size := le.Uint64(text), fileID{le.Uint64(text[8:]), le.Uint64(text[16:])}, int64(le.Uint64(text[24:]))
		switch {
		case g > gen, g == gen && file != id:
			return 0, errRemoved
		case g == gen:
			most = max(most, size)
		}
	}
	return most, nil
}

// clean removes what processes that have ended have left.
func (p *peers) clean() {
	names, _ := readNames(p.dir)
	for _, name := range names {
		path := filepath.Join(p.dir, name)
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		age := time.Since(info.ModTime())
		switch {
		case isName(name):
			if p.endedLocked(name) && os.Rename(path, path+deadSuffix) == nil {
				now := time.Now()
				_ = os.Chtimes(path+deadSuffix, now, now)
				_ = os.Remove(path + bellSuffix)
			}
		case strings.HasSuffix(name, deadSuffix) && age > 24*time.Hour, strings.HasPrefix(name, newPrefix) && age > time.Hour:
			_ = os.Remove(path)
		case strings.HasSuffix(name, bellSuffix) && age > time.Hour:
			if _, err := look(strings.TrimSuffix(path, bellSuffix)); errors.Is(err, fs.ErrNotExist) {
				_ = os.Remove(path)
			}
		}
	}
}

// tether returns a copy of the file with the flock.
func (p *peers) tether() (*os.File, error) {
	p.Session()
	s := p.own.Load()
	if s == nil {
		return nil, errors.New("this process has no session beside the locks")
	}
	fd, err := unix.FcntlInt(s.lock.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), s.lock.Name()), nil
}

func (p *peers) close() {
	p.mu.Lock()
	p.closed = true
	all := p.old
	if s := p.own.Load(); s != nil {
		all = append(all, s)
	}
	p.own.Store(nil)
	p.old = nil
	for name := range p.known {
		p.forgetLocked(name)
	}
	p.mu.Unlock()
	for _, s := range all {
		path := filepath.Join(p.dir, s.name)
		_ = os.Remove(path)
		_ = os.Remove(path + bellSuffix)
		_ = s.bell.Close()
		<-s.done
		_ = s.lock.Close()
	}
}
