package serve

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// states keeps the states of Terraform in a folder: a file each, and its last versions beside it.
// Only one server may use a folder: see OpenStates.
type states struct {
	dir string

	mu    sync.Mutex
	names map[string]*stateLock
	wrote map[string]stateVersion // the last write of each state
}

// stateVersion is which state was written, and under which lock.
type stateVersion struct {
	ID, Lineage string
	Serial      int64
}

// stateLock orders the requests for one state. users counts the requests that have it or wait for it.
type stateLock struct {
	sync.Mutex
	users int
}

const (
	mostVersions = 20        // of a state, without the current one
	mostState    = 256 << 20 // bytes
)

// newStates removes what a server that was killed had not received whole.
func newStates(dir string) *states {
	if dir != "" {
		all, _ := os.ReadDir(dir) // if it cannot be read, the first write says so
		for _, e := range all {
			if strings.HasPrefix(e.Name(), arriving) {
				os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
	return &states{dir: dir, names: map[string]*stateLock{}, wrote: map[string]stateVersion{}}
}

// arriving begins the names of states that are not whole yet.
const arriving = ".arriving-"

// lock keeps others from the state until the caller calls unlock.
func (s *states) lock(name string) (unlock func()) {
	s.mu.Lock()
	l := s.names[name]
	if l == nil {
		l = &stateLock{}
		s.names[name] = l
	}
	l.users++
	s.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(s.names, name)
		}
	}
}

// path returns the file of a state. Names that differ in case only have different files on every
// system, and no name leads out of the folder.
func (s *states) path(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	file := b.String()
	if len(file) > 150 {
		sum := sha256.Sum256([]byte(name))
		file = file[:80] + "=" + hex.EncodeToString(sum[:]) // no shorter name has a "="
	}
	return filepath.Join(s.dir, file+".tfstate")
}

// receive writes a state to a file of its own, on stable storage. sum is the MD5 that the
// client sent with it, in base64, or empty.
func (s *states) receive(r io.Reader, sum string) (file string, err error) {
	f, err := os.CreateTemp(s.dir, arriving+"*") // only its owner may read it
	if err != nil {
		return "", err
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	h := md5.New()
	n, err := io.Copy(io.MultiWriter(f, h), r)
	if err != nil {
		return "", err
	}
	if n == 0 { // a program that reads it would take it for no state at all
		return "", invalid("the state is empty")
	}
	if got := base64.StdEncoding.EncodeToString(h.Sum(nil)); sum != "" && got != sum {
		return "", invalid("the state is not the one whose Content-MD5 was sent")
	}
	if err = f.Sync(); err == nil {
		err = f.Close()
	}
	return f.Name(), err
}

// put makes the file the state, and keeps the one before. The caller has the lock of the name. A
// request that was overtaken on its way is refused: Terraform gives each state that it writes
// under one ID a larger serial. Under another ID an older state may be meant, as by
// "terraform state push -force".
func (s *states) put(name, file, id string) error {
	v, err := versionOf(file)
	if err != nil {
		return err
	}
	v.ID = id
	s.mu.Lock()
	last := s.wrote[name]
	s.mu.Unlock()
	if id != "" && last.ID == id && last.Lineage == v.Lineage && v.Serial < last.Serial {
		return fmt.Errorf("%w: a state with serial %d was written under this ID already, and this one has serial %d", errOvertaken, last.Serial, v.Serial)
	}
	path := s.path(name)
	if err := s.keep(path); err != nil {
		return err
	}
	if err := os.Rename(file, path); err != nil {
		return err
	}
	s.mu.Lock()
	s.wrote[name] = v
	s.mu.Unlock()
	return s.sync()
}

var errOvertaken = errors.New("the request was overtaken by a later one")

// versionOf reads the serial and the lineage of a state, which Terraform writes before all that is
// large. What is no such state has neither.
func versionOf(file string) (v stateVersion, err error) {
	f, err := os.Open(file)
	if err != nil {
		return v, err
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, 4096))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return v, nil
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return v, nil
		}
		switch key {
		case "serial":
			err = d.Decode(&v.Serial)
		case "lineage":
			err = d.Decode(&v.Lineage)
		default:
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		if err != nil {
			return v, nil
		}
	}
	return v, nil
}

// remove keeps the state as a version only.
func (s *states) remove(name string) error {
	path := s.path(name)
	if err := s.keep(path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return s.sync()
}

// keep gives the state at path a second name, as a version, and removes the oldest versions.
func (s *states) keep(path string) error {
	version := path + "." + time.Now().UTC().Format("20060102T150405.000000000")
	if err := os.Link(path, version); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	all, err := os.ReadDir(s.dir) // in the order of their names
	versions := slices.DeleteFunc(all, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), filepath.Base(path)+".") })
	for len(versions) > mostVersions {
		os.Remove(filepath.Join(s.dir, versions[0].Name()))
		versions = versions[1:]
	}
	return err
}

// sync has what was renamed survive a loss of power.
func (s *states) sync() error {
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}
