//go:build unix

package filestore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold-dev/leasehold/store"
)

// mailbox is a datagram socket that this process listens on.
type mailbox struct {
	name string
	path string
	info os.FileInfo
	conn *net.UnixConn
	done sync.WaitGroup
}

// openMailbox makes a socket in dir, and makes dir if it is missing.
func openMailbox(dir string, shared bool, hear func([]byte)) (*mailbox, error) {
	name := strings.ToLower(rand.Text()[:socketName])
	for try := 0; ; try++ {
		err := makeSocketDir(dir, shared)
		if err != nil {
			return nil, err
		}
		sweep(dir)
		b, err := listen(dir, name, hear)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || try == 10 {
			return b, err
		}
		// Another process, whose last waiter left, has removed the directory again.
	}
}

func listen(dir, name string, hear func([]byte)) (*mailbox, error) {
	b := &mailbox{name: name, path: filepath.Join(dir, name)}
	addr, done, err := address(dir, name)
	if err != nil {
		return nil, err
	}
	defer done()
	b.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: addr, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	if b.info, err = os.Lstat(b.path); err == nil {
		err = matchRights(b.path, strings.TrimSuffix(dir, socketsSuffix), 0)
	}
	if err != nil {
		return nil, errors.Join(err, b.conn.Close(), os.Remove(b.path))
	}
	b.done.Go(func() {
		text := make([]byte, messageHead+1<<8+store.MaxName)
		for {
			n, err := b.conn.Read(text)
			if err != nil {
				return // it is closed
			}
			hear(text[:n])
		}
	})
	return b, nil
}

// there reports whether other processes can still find the socket.
func (b *mailbox) there() bool {
	info, err := os.Lstat(b.path)
	return err == nil && os.SameFile(info, b.info)
}

func (b *mailbox) close() {
	if b.there() {
		_ = os.Remove(b.path)
	}
	_ = b.conn.Close()
	b.done.Wait()
	_ = os.Remove(filepath.Dir(b.path)) // fails unless it was the last one in it
}

// makeSocketDir makes dir with the rights of the lock file. It returns an error
// if an existing dir cannot be used.
func makeSocketDir(dir string, shared bool) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return matchRights(dir, strings.TrimSuffix(dir, socketsSuffix), 0o100)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil // gone again, which the next step finds out
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if why := exposed(info); why != "" && !shared {
		return fmt.Errorf("%s: %s", dir, why)
	}
	return nil
}

// matchRights gives path the read and write rights of the lock file, and for a
// directory the right to enter it wherever there is the right to write. A user
// that can write the lock file can then notify its waiters.
func matchRights(path, lockFile string, enter os.FileMode) error {
	info, err := os.Stat(lockFile)
	if err != nil {
		return err
	}
	perm := info.Mode().Perm() & 0o666
	if enter != 0 {
		perm |= perm & 0o222 >> 1
	}
	if err := os.Chmod(path, perm|0o600|enter); err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && perm&0o060 != 0 {
		_ = os.Lchown(path, -1, int(st.Gid)) // fails unless this user is in that group
	}
	return nil
}

// sweep removes sockets that no process has open. It leaves young ones, which a
// process may be about to open.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var w wire
	defer w.close()
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().Type() == fs.ModeSocket && time.Since(info.ModTime()) > time.Minute && w.probe(dir, e.Name()) == dead {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// wire is a socket to send from. The zero value opens it at first use.
type wire struct {
	fd   int
	open bool
}

func (w *wire) dial() error {
	if w.open {
		return nil
	}
	fd, err := datagramSocket()
	if err == nil {
		w.fd, w.open = fd, true
	}
	return err
}

func (w *wire) close() {
	if w.open {
		_ = unix.Close(w.fd)
		w.open = false
	}
}

// probe reports whether a process has the socket open, without disturbing it.
func (w *wire) probe(dir, name string) presence {
	addr, done, err := address(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return dead
	}
	if err != nil || w.dial() != nil {
		return unknown
	}
	defer done()
	switch err := unix.Connect(w.fd, &unix.SockaddrUnix{Name: addr}); {
	case err == nil:
		return alive
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOENT):
		return dead
	}
	return unknown
}

// send sends a message without blocking. A message that cannot be sent is lost.
func (w *wire) send(dir, name string, text []byte) {
	addr, done, err := address(dir, name)
	if err != nil {
		return
	}
	defer done()
	if errors.Is(w.try(addr, text), unix.EAGAIN) {
		// Linux counts what the receivers have not read yet against the sender's socket. If
		// enough of them are stopped, it takes messages for no receiver at all, and a new one
		// does. If only this receiver's queue is full, the second try fails as well.
		w.close()
		_ = w.try(addr, text)
	}
}

func (w *wire) try(addr string, text []byte) error {
	if err := w.dial(); err != nil {
		return err
	}
	if err := unix.Connect(w.fd, &unix.SockaddrUnix{Name: addr}); err != nil {
		return err
	}
	return unix.Sendto(w.fd, text, unix.MSG_DONTWAIT, nil)
}
