package filestore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// A log is a file to which every process appends, with one system call for each frame. The
// kernel puts the frames in one order, so there is no lock that a stopped process
// could keep: a frame has taken effect if the version that it replaces is still the newest where
// the frame stands. Each process finds that out by reading what was appended since it last did.
//
// A process that is killed while it appends, or a full disk, can leave a part of a frame. What
// is no frame has no effect, and is skipped once a frame follows it.
//
// A log that has grown is sealed by one more frame, and goes on in a file with the next number,
// which begins with the newest version of each record. Each process that reads the seal tries to make
// that file, with link(2), so that only one succeeds. The file with the largest number counts. The
// file before it stays, so that a process that lists the folder always finds a log.

// log is the log in a folder, as far as this process has read it.
type log struct {
	dir    string
	mode   fs.FileMode // of new files
	boot   string
	res    time.Duration // of the clock
	clock  func() (time.Duration, error)
	wall   func() time.Time
	others others

	mu      sync.Mutex
	f       *os.File // nil: none is open
	path    string
	id      fileID
	gen     uint64 // its number
	salt    uint32
	begun   int64 // its size when it was made
	pos     int64 // how much of it was replayed
	sealed  bool
	foreign bool // it is from another boot
	served  bool // a log of this boot was open
	index   map[string]version
	most    uint64 // the largest floor of all frames
	same    int    // how many frames came since it rose
	own     uint64 // the version that is being written
	won     bool   // it has taken effect
	buf     []byte
	lost    map[string]int  // how often in a row another process was faster, by key
	wished  map[string]bool // where another process keeps losing to this one
}

// version is the newest version of a record.
type version struct {
	id      uint64
	number  uint64
	written int64
	at      int64 // where the value is
	size    int
	idle    bool
}

// others knows the processes that use the folder.
type others interface {
	// seen returns how much of the log with number gen the live processes have seen. It returns an
	// error if one of them uses another file with that number, or a later log.
	seen(gen uint64, id fileID) (size int64, err error)
	// mark notes what this process has seen.
	mark(gen uint64, id fileID, size int64)
}

// turnAt is the size from which a log goes on in the next file. That keeps what a process
// has to read when it starts small: a quarter of a megabyte takes less than a millisecond.
const turnAt = 256 << 10

var (
	errRemoved  = errors.New("it is in use, but its log was removed or replaced: put back what was removed, or end the processes that use it")
	errShrunk   = errors.New("it is in use, but its log was emptied or shortened: end the processes that use it")
	errBootID   = errors.New("a process with another boot id has taken it over: containers and machines that do not share a boot id cannot share locks in files")
	errTooLarge = errors.New("the record is too large for a log")
)

// linkedError reports a log with several names.
func linkedError(names uint64) error {
	return fmt.Errorf("its log has %d names (hard links), and processes that use different ones do not exclude each other: remove all names but one", names)
}

// floor returns a number that no token may be below, times 2048: the wall clock in
// microseconds, or the largest such number so far. If the clock was set back, it rises with the
// frames, so that it stays above the tokens that they grant.
func (l *log) floor() uint64 {
	least := l.most
	if l.same > 512 {
		least++
	}
	return max(min(uint64(max(0, l.wall().UnixMicro()))>>11+1, recordstore.MaxFloor/2), least)
}

// refresh takes in what was appended, and goes on to the next file from a sealed one.
func (l *log) refresh() error {
	for range 1000 {
		if l.f == nil {
			if err := l.first(); err != nil {
				return err
			}
		}
		st, err := look(l.path)
		gone := err != nil || st.id != l.id
		if gone {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if st, err = lookAt(l.f); err != nil {
				return err
			}
		}
		if st.size < l.pos {
			return errShrunk
		}
		if err := l.replay(st.size); err != nil {
			return err
		}
		switch {
		case l.sealed:
			if err := l.turn(); err != nil {
				return err
			}
		case gone:
			return errRemoved
		case st.links > 1 && l.single(l.f) != nil:
			return linkedError(st.links)
		case l.foreign && l.served:
			return errBootID
		case l.foreign: // the machine has booted since
			if _, err := l.f.Write((&frame{kind: seal}).appendTo(nil, l.salt)); err != nil {
				return err
			}
		default:
			l.served = true
			return nil
		}
	}
	return errors.New("other processes kept making new logs")
}

// replay takes in the log up to a size that it has.
func (l *log) replay(size int64) error {
	n := int(size - l.pos)
	if n <= 0 || l.sealed {
		return nil
	}
	if cap(l.buf) < n {
		l.buf = make([]byte, max(n, 16<<10))
	}
	b := l.buf[:n]
	switch n, err := l.f.ReadAt(b, l.pos); {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case n < len(b):
		return errShrunk
	}
	for done := 0; done < n && !l.sealed; {
		f, size, err := parse(b[done:], l.salt)
		for skip := done + 1; err != nil; skip++ { // a part of a frame, or one that is being written
			i := bytes.Index(b[skip:], binary.LittleEndian.AppendUint32(nil, frameMark))
			if i < 0 {
				return nil
			}
			skip += i
			if f, size, err = parse(b[skip:], l.salt); err == nil {
				l.pos += int64(skip - done)
				done = skip
			}
		}
		l.take(f, l.pos)
		done += size
		l.pos += int64(size)
	}
	return nil
}

// take takes in the frame that begins at a position.
func (l *log) take(f frame, at int64) {
	if l.same++; f.floor > l.most {
		l.most, l.same = f.floor, 0
	}
	switch f.kind {
	case seal:
		l.sealed = true
	case wish:
		if f.id != l.own {
			l.wished[f.key] = true
		}
	case write:
		if l.index[f.key].id != f.base {
			return
		}
		if f.id == l.own {
			l.won = true
		} else if len(l.wished) > 0 {
			delete(l.wished, f.key)
		}
		l.index[f.key] = version{id: f.id, number: f.number, written: f.written, idle: f.idle, size: len(f.value), at: at + frameHead + bodyHead + int64(len(f.key))}
	}
}

// files returns the numbers of the files in the folder, in order.
func (l *log) files() (gens []uint64, err error) {
	names, err := readNames(l.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if n, err := strconv.ParseUint(name, 10, 64); err == nil {
			gens = append(gens, n)
		}
	}
	slices.Sort(gens)
	return gens, nil
}

func (l *log) name(gen uint64) string { return filepath.Join(l.dir, strconv.FormatUint(gen, 10)) }

// first opens the newest file, or makes one if there is none.
func (l *log) first() error {
	var last error
	for try := range 20 {
		if try > 10 { // a process that has begun to use a new log may not have noted that yet
			time.Sleep(time.Millisecond)
		}
		gens, err := l.files()
		if err != nil {
			return err
		}
		newest := uint64(0)
		if len(gens) > 0 {
			newest = gens[len(gens)-1]
			err = l.open(newest)
			if errors.Is(err, fs.ErrNotExist) { // it is an old one by now
				last = err
				continue
			}
			if err == nil {
				if last = l.whole(); last == nil {
					l.others.mark(l.gen, l.id, l.pos)
					return nil
				}
				l.drop()
				continue
			}
			if !errors.Is(err, errNoLog) {
				return err
			}
		}
		// There is no log. That is no harm if nobody uses it: it is new, or the machine has lost power.
		if _, last = l.others.seen(newest, fileID{}); last != nil {
			continue
		}
		time.Sleep(5 * time.Millisecond) // the last tokens of one that was removed are up to two ahead of the clock
		l.gen, l.index, l.foreign = newest, map[string]version{}, false
		l.salt = rand.Uint32()
		if err := l.make(); err != nil {
			return err
		}
	}
	return cmp.Or(last, errRemoved)
}

// whole returns an error if the processes that live use another log, or have seen more of this one.
func (l *log) whole() error {
	size, err := l.others.seen(l.gen, l.id)
	if err != nil {
		return err
	}
	if st, err := lookAt(l.f); err != nil || st.size < size {
		return cmp.Or(err, errShrunk)
	}
	return nil
}

// errNoLog is matched by the error about a file that is no log.
var errNoLog = errors.New("it is no log of locks, or was damaged")

// open opens the file with a number, and replays it.
func (l *log) open(gen uint64) error {
	path := l.name(gen)
	f, err := openLog(path)
	if err != nil {
		return err
	}
	st, err := lookAt(f)
	if err == nil && st.links > 1 {
		err = l.single(f)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	b := make([]byte, min(st.size, int64(logHead+frameHead+bodyHead+256)))
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return errors.Join(err, f.Close())
	}
	if len(b) < logHead || string(b[:len(logMagic)]) != logMagic {
		_ = f.Close()
		return fmt.Errorf("%s: %w", path, errNoLog)
	}
	salt := binary.LittleEndian.Uint32(b[len(logMagic):])
	h, n, err := parse(b[logHead:], salt)
	if err != nil || h.kind != header {
		_ = f.Close()
		return fmt.Errorf("%s: %w", path, errNoLog)
	}
	if l.f != nil {
		if salt != l.salt {
			_ = f.Close()
			return errRemoved
		}
		_ = l.f.Close()
	}
	l.f, l.path, l.id, l.gen, l.salt = f, path, st.id, gen, salt
	l.sealed, l.foreign, l.index = false, h.key != l.boot, map[string]version{}
	l.lost, l.wished = map[string]int{}, map[string]bool{}
	l.most = max(l.most, h.floor)
	l.begun, l.pos = int64(h.base), int64(logHead+n)
	return l.replay(st.size)
}

// single returns an error if the log that is open as f has several names. It first removes the temporary
// name, which remains if the process that made the log was stopped.
func (l *log) single(f *os.File) error {
	log, err := lookAt(f)
	if err != nil {
		return err
	}
	names, err := readNames(l.dir)
	for _, name := range names {
		path := filepath.Join(l.dir, name)
		if st, err := look(path); strings.HasPrefix(name, newLog) && err == nil && st.id == log.id {
			_ = os.Remove(path)
		}
	}
	if log, gone := lookAt(f); gone != nil || log.links > 1 { // the process that made it may have removed the name first
		return cmp.Or(err, gone, linkedError(log.links))
	}
	return nil
}

// drop forgets the file that is open.
func (l *log) drop() {
	_ = l.f.Close()
	l.f, l.index = nil, nil
}

// turn goes on to the newest file from a sealed one, and makes the next one if that is the newest.
func (l *log) turn() error {
	for range 20 {
		gens, err := l.files()
		if err != nil {
			return err
		}
		newest := uint64(0)
		if len(gens) > 0 {
			newest = gens[len(gens)-1]
		}
		switch {
		case newest < l.gen:
			return errRemoved
		case newest > l.gen:
			err := l.open(newest)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				l.others.mark(l.gen, l.id, l.pos)
			}
			return err
		}
		if _, err := l.others.seen(l.gen, l.id); err != nil { // the next one is there by now, or was removed
			continue
		}
		if err := l.make(); err != nil {
			return err
		}
	}
	return errRemoved
}

// make makes the file after number l.gen, unless there is one, from what this process knows. It
// removes files that nobody needs any more.
func (l *log) make() error {
	b := binary.LittleEndian.AppendUint32([]byte(logMagic), l.salt)
	b = binary.LittleEndian.AppendUint32(b, 0)
	h := frame{kind: header, key: l.boot, floor: l.floor() + 1}
	body := make([]byte, 0, 4<<10)
	for key, v := range l.index {
		// The next lease of a record that is left out has a larger token all the same: see floor. The
		// number of one that was written often may be ahead of the clock, and it stays for now.
		if v.idle && v.number <= h.floor || l.foreign {
			continue
		}
		value := make([]byte, v.size)
		if _, err := l.f.ReadAt(value, v.at); err != nil {
			return err
		}
		body = (&frame{kind: write, id: v.id, number: v.number, written: v.written, idle: v.idle, key: key, value: value}).appendTo(body, l.salt)
	}
	h.base = uint64(len(body))
	b = append(h.appendTo(b, l.salt), body...)
	temp, err := l.temp(b)
	if err == nil {
		err = os.Link(temp, l.name(l.gen+1))
		_ = os.Remove(temp)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		l.tidy()
	}
	return err
}

// newLog begins the name of a log that is being made.
const newLog = "new-"

// temp makes a file, with room for what a log grows to.
func (l *log) temp(b []byte) (path string, err error) {
	path = filepath.Join(l.dir, newLog+strconv.FormatUint(rand.Uint64(), 36))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil {
		err = reserve(f, int64(max(2*turnAt, 5*len(b))))
	}
	if err == nil && l.mode != 0o600 {
		err = f.Chmod(l.mode)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return path, err
}

// tidy removes old files.
func (l *log) tidy() {
	gens, _ := l.files()
	for i := 0; i < len(gens)-2; i++ {
		_ = os.Remove(l.name(gens[i]))
	}
	names, _ := readNames(l.dir)
	for _, name := range names {
		if strings.HasPrefix(name, newLog) {
			path := filepath.Join(l.dir, name)
			if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
				_ = os.Remove(path)
			}
		}
	}
}

// read returns the newest version of a record.
func (l *log) read(key string) (recordstore.Item, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return recordstore.Item{}, err
	}
	return l.item(key)
}

func (l *log) item(key string) (it recordstore.Item, err error) {
	v, ok := l.index[key]
	if !ok {
		it.Floor = l.floor()
		it.Version = noRecord(l.gen) + strconv.FormatUint(it.Floor, 10)
		return it, nil
	}
	it.Value = make([]byte, v.size)
	if _, err := l.f.ReadAt(it.Value, v.at); err != nil {
		return it, err
	}
	now, err := l.clock()
	if err != nil {
		return it, err
	}
	it.Version = strconv.FormatUint(v.id, 32)
	it.Now = time.Unix(0, int64(now))
	it.Written = time.Unix(0, min(v.written+int64(l.res), int64(now)))
	return it, nil
}

// noRecord is how the version of a record begins that is not there while a log is in use.
func noRecord(gen uint64) string { return "none since " + strconv.FormatUint(gen, 10) + " above " }

// replace replaces a version of a record.
func (l *log) replace(key string, value []byte, old string, idle bool) (next string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil || l.sealed {
		if err := l.refresh(); err != nil {
			return "", err
		}
	}
	if l.wished[key] {
		// Another process wants to write, and cannot keep up with this one. It gets a moment, once:
		// it may have been stopped.
		delete(l.wished, key)
		nap()
		if err := l.refresh(); err != nil {
			return "", err
		}
	}
	have, known := l.index[key]
	f := frame{kind: write, idle: idle, key: key, value: value, base: have.id, id: rand.Uint64() | 1, floor: l.floor()}
	f.number = have.number + 1
	floor, absent := strings.CutPrefix(old, noRecord(l.gen))
	if absent {
		n, _ := strconv.ParseUint(floor, 10, 64)
		f.number = n + 1
	}
	if known == absent || known && old != strconv.FormatUint(have.id, 32) {
		return "", l.lose(key)
	}
	now, err := l.clock()
	if err != nil {
		return "", err
	}
	f.written = int64(now)
	if len(value) > maxBody/2 {
		return "", errTooLarge
	}
	l.buf = f.appendTo(l.buf[:0], l.salt)
	l.own, l.won = f.id, false
	if _, err := l.f.Write(l.buf); err != nil {
		return "", recordstore.Refusal("%w", err) // a part of a frame never takes effect
	}
	if err := l.refresh(); err != nil {
		return "", err
	}
	if !l.won {
		return "", l.lose(key)
	}
	if len(l.lost) > 0 {
		delete(l.lost, key)
	}
	l.others.mark(l.gen, l.id, l.pos)
	if l.pos > max(turnAt, 4*l.begun) {
		// The next step goes on in another file, unless the disk has no room for one.
		if temp, err := l.temp(nil); err == nil {
			_ = os.Remove(temp)
			_, _ = l.f.Write((&frame{kind: seal}).appendTo(nil, l.salt))
		}
	}
	return strconv.FormatUint(f.id, 32), nil
}

// lose notes that another process was faster. A process that loses again and again asks the others to
// wait a moment.
func (l *log) lose(key string) error {
	if l.lost[key]++; l.lost[key] > 1 {
		f := frame{kind: wish, id: rand.Uint64() | 1, key: key, floor: l.most}
		l.own = f.id
		_, _ = l.f.Write(f.appendTo(l.buf[:0], l.salt)) // it is a courtesy
	}
	return recordstore.ErrConflict
}

// all returns every record.
func (l *log) all() (map[string]recordstore.Item, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.refresh()
	all := make(map[string]recordstore.Item, len(l.index))
	for key := range l.index {
		if err == nil {
			all[key], err = l.item(key)
		}
	}
	return all, err
}

func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		l.drop()
	}
	l.path, l.others = "", closedFolder{}
}

// closedFolder refuses all use.
type closedFolder struct{}

func (closedFolder) seen(uint64, fileID) (int64, error) { return 0, fs.ErrClosed }
func (closedFolder) mark(uint64, fileID, int64)         {}

// readNames returns the names in a folder.
func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
