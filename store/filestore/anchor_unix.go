//go:build unix

package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// anchor is a lock file that this process has open. All stores of the process in
// the same file share one. Closing any descriptor of the main file or the index
// would drop SQLite's locks on it, so the anchor closes its descriptors only
// after the last store is closed.
type anchor struct {
	id   fileID
	refs int // guarded by anchors

	mu      sync.Mutex // held by the store that opens the file
	settled bool       // the three files are open and their flocks are held
	real    string     // the main file's path without symbolic links
	main    *os.File
	log     pinned
	index   pinned
	size    atomic.Int64 // largest size of the main file seen so far
	more    []*os.File   // also the main file, guarded by anchors
}

// fileID identifies an open file.
type fileID struct{ dev, ino uint64 }

// pinned is a file beside the main one that is kept open.
type pinned struct {
	f    *os.File
	id   fileID
	size atomic.Int64
}

// anchors are the anchors of this process.
var anchors = struct {
	sync.Mutex
	of map[fileID]*anchor
}{of: map[fileID]*anchor{}}

func idOf(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), uint64(st.Ino)} }

func stat(path string) (st unix.Stat_t, err error) {
	if err := unix.Stat(path, &st); err != nil {
		return st, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return st, nil
}

// openAnchor returns the anchor of the file at path, and makes one if there is none.
// The caller must call release.
func openAnchor(path string) (*anchor, error) {
	anchors.Lock()
	defer anchors.Unlock()
	st, err := stat(path)
	if err != nil {
		return nil, err
	}
	if a := anchors.of[idOf(&st)]; a != nil {
		a.refs++
		return a, nil
	}
	real, err := realPath(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(real, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("it cannot be opened for writing: %w: check the rights to it", err)
	}
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	id := idOf(&st)
	if a := anchors.of[id]; a != nil { // the file at path was replaced between stat and open
		a.more = append(a.more, f)
		return nil, errReplaced
	}
	a := &anchor{id: id, refs: 1, real: real, main: f}
	anchors.of[id] = a
	return a, nil
}

// release undoes openAnchor. No connection of the store to the file may be left.
func (a *anchor) release() {
	anchors.Lock()
	defer anchors.Unlock()
	if a.refs--; a.refs > 0 {
		return
	}
	delete(anchors.of, a.id)
	a.index.close()
	a.log.close()
	for _, f := range a.more {
		_ = f.Close()
	}
	_ = a.main.Close() // last: a process that finds it in use requires the others to be too
}

func (p *pinned) close() {
	if p.f != nil {
		_ = p.f.Close()
		p.f = nil
	}
}

// settle calls open, which opens the database, when that is safe, and keeps it
// safe from then on. An error that is a *strayError may go away; others do not.
// If settle fails after open, it calls shut to close the connections.
func (a *anchor) settle(ctx context.Context, path string, open, shut func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.settled {
		if err := cmp.Or(a.single(), a.intact(path)); err != nil {
			return err
		}
		real, err := realPath(path)
		if err == nil {
			err = a.log.intact(real + logSuffix)
		}
		if err != nil {
			return err
		}
		return open()
	}
	if err := a.lockDoor(ctx); err != nil {
		return err
	}
	defer a.door(unix.F_UNLCK)
	err := a.join(path, open, shut)
	if err != nil {
		a.log.close()
		a.index.close()
		_ = unix.Flock(int(a.main.Fd()), unix.LOCK_UN)
	}
	a.settled = err == nil
	return err
}

// lockDoor waits until no other process is opening the file.
func (a *anchor) lockDoor(ctx context.Context) error {
	for try := 0; ; try++ {
		err := a.door(unix.F_WRLCK)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			return err
		}
		pause(ctx, try)
		if ctx.Err() != nil {
			return errors.Join(errOpening, ctx.Err())
		}
	}
}

// door locks or unlocks a byte of the main file. A process opens the file only while it
// has this lock.
func (a *anchor) door(how int16) error {
	_, err := a.lockByte(setLock, how, doorByte)
	return err
}

// turnstile returns the turnstile of the file.
func (a *anchor) turnstile() *turnstile {
	return &turnstile{
		set: func(in bool) error {
			how := int16(unix.F_UNLCK)
			if in {
				how = unix.F_WRLCK
			}
			_, err := a.lockByte(setLock, how, turnstileByte)
			return err
		},
		taken: func() bool {
			how, err := a.lockByte(getLock, unix.F_WRLCK, turnstileByte)
			return err == nil && how != unix.F_UNLCK
		},
	}
}

// The bytes of the main file that processes lock, far from those that SQLite locks.
const (
	pendingByte   = 0x40000000 // where SQLite's locks begin; they end 512 bytes on
	doorByte      = pendingByte + 4096
	turnstileByte = doorByte + 1
)

// lockByte makes the call fcntl for a lock of one byte. It returns how another process
// has locked it, if cmd asks for that.
func (a *anchor) lockByte(cmd int, how int16, which int64) (int16, error) {
	l := unix.Flock_t{Type: how, Start: which, Len: 1}
	err := unix.FcntlFlock(a.main.Fd(), cmd, &l)
	return l.Type, err
}

// join opens the database. The caller has the lock of door.
func (a *anchor) join(path string, open, shut func() error) error {
	alone, err := tryLock(a.main)
	if err != nil {
		return err
	}
	if err := a.single(); err != nil {
		return err
	}
	if alone {
		// A log left behind by killed processes may be used. A log that other
		// processes use, with a file that had this name before, may not.
		if err := a.log.pin(a.real+logSuffix, false); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		a.log.close()
	} else if err := cmp.Or(a.log.pin(a.real+logSuffix, true), a.index.pin(a.real+indexSuffix, true)); err != nil {
		return err
	}
	if !alone {
		var st unix.Stat_t
		if err := unix.Fstat(int(a.main.Fd()), &st); err != nil {
			return err
		}
		if st.Size < leastDatabase {
			return errShrunk
		}
	}
	if err := open(); err != nil {
		return err
	}
	if alone {
		err = cmp.Or(a.log.pin(a.real+logSuffix, false), a.index.pin(a.real+indexSuffix, false))
	}
	for _, f := range []*os.File{a.main, a.log.f, a.index.f} {
		if err == nil {
			err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		}
	}
	if err == nil {
		// The last process to close the file may have removed them before open ran.
		err = a.intact(path)
	}
	if err != nil {
		return errors.Join(err, shut())
	}
	return nil
}

// tryLock tries to get an exclusive flock. It returns false if another process
// has one.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("its file system does not support flock: %w", err)
	}
	return true, nil
}

// pin opens a file beside the main one. used says whether other processes must
// have it open, or must not.
func (p *pinned) pin(path string, used bool) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &strayError{path, "is gone", err}
	}
	if err != nil {
		return err
	}
	p.close()
	p.f = f
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	p.id = idOf(&st)
	p.size.Store(st.Size)
	switch free, err := tryLock(f); {
	case err != nil:
		return err
	case free && used:
		return &strayError{path, "is not the one that is in use", nil}
	case !free && !used:
		return &strayError{path, "is in use with another lock file, which was removed or replaced", nil}
	}
	return nil
}

// intact returns an error if the names no longer lead to the files that are open,
// or if a file has shrunk.
func (a *anchor) intact(path string) error {
	st, err := stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be found any more: %w", err)
	case idOf(&st) != a.id:
		return errReplaced
	case st.Size < leastDatabase || shrunk(&a.size, st.Size):
		return errShrunk
	}
	return cmp.Or(a.log.intact(a.real+logSuffix), a.index.intact(a.real+indexSuffix))
}

func (p *pinned) intact(path string) error {
	st, err := stat(path)
	switch {
	case err != nil:
		return &strayError{path, "is gone", err}
	case idOf(&st) != p.id:
		return &strayError{path, "is not the one that is in use", nil}
	case shrunk(&p.size, st.Size):
		return &strayError{path, "has been emptied or shortened", nil}
	}
	return nil
}

// shrunk records the size of a file that only grows while in use, and reports
// whether it has shrunk.
func shrunk(most *atomic.Int64, size int64) bool {
	for {
		before := most.Load()
		if size <= before {
			return size < before
		}
		if most.CompareAndSwap(before, size) {
			return false
		}
	}
}

// single returns an error if the main file has more than one name.
func (a *anchor) single() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(a.main.Fd()), &st); err != nil {
		return err
	}
	if st.Nlink > 1 {
		return linkedError(uint64(st.Nlink))
	}
	return nil
}
