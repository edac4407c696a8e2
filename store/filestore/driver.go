package filestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// folder is the driver of recordstore.
type folder struct {
	*peers
	path   string
	maxTTL time.Duration
	words  string // the clock
	log    *log
	broken func(owner string)

	mu      sync.Mutex
	watches map[string]map[chan recordstore.Item]bool // by key
}

var _ recordstore.Peers = (*folder)(nil)

// brokenPrefix comes before the owner whose lease was broken in what a bell says. Otherwise it
// says a key.
const brokenPrefix = "!"

// openFolder opens or makes the folder. broken is called with what other processes break.
func openFolder(dir string, o *Options, m machine, broken func(owner string)) (*folder, error) {
	abs, modes, err := prepare(dir, o)
	if err != nil {
		return nil, err
	}
	d := &folder{path: abs, maxTTL: o.MaxTTL, words: m.words, broken: broken, watches: map[string]map[chan recordstore.Item]bool{}}
	boot, err := m.bootID()
	if err == nil {
		_, err = m.now()
	}
	if err != nil {
		return nil, fmt.Errorf("lock folder %s: %w", abs, err)
	}
	d.peers = newPeers(filepath.Join(abs, sessionsDir), modes.file, o.Lasting, d.hear, logger(o))
	clock := func() (time.Duration, error) {
		now, err := m.now()
		return time.Duration(now), err
	}
	d.log = &log{dir: filepath.Join(abs, logDir), mode: modes.file, boot: boot, res: m.resolution, clock: clock, wall: m.wall, others: d.peers}
	if _, err := d.log.read(""); err != nil {
		_ = d.Close() // the first error is the one to report
		return nil, fmt.Errorf("lock folder %s: %w", abs, err)
	}
	return d, nil
}

// Describe implements recordstore.Driver.
func (d *folder) Describe() store.Caps {
	return store.Caps{Engine: "files", MaxTTL: d.maxTTL, Reach: "machine", Clock: d.words, Class: store.CrashSafe}
}

// explain returns err as recordstore understands it. Nothing but a lack of descriptors or memory
// ends by itself.
func (d *folder) explain(err error) error {
	switch {
	case err == nil, errors.Is(err, recordstore.ErrConflict):
		return err
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("lock folder %s: %w", d.path, err)
	case errors.Is(err, recordstore.ErrRefused):
		return fmt.Errorf("lock folder %s: %w", d.path, err)
	}
	return recordstore.Refusal("lock folder %s: %w", d.path, err)
}

// Read implements recordstore.Driver.
func (d *folder) Read(_ context.Context, key string) (recordstore.Item, error) {
	it, err := d.log.read(key)
	return it, d.explain(err)
}

// Write implements recordstore.Driver.
func (d *folder) Write(_ context.Context, key string, value []byte, version string, idle bool) (string, error) {
	next, err := d.log.replace(key, value, version, idle)
	return next, d.explain(err)
}

// List implements recordstore.Driver.
func (d *folder) List(_ context.Context, each func(string, recordstore.Item) error) error {
	all, err := d.log.all()
	if err != nil {
		return d.explain(err)
	}
	for key, it := range all {
		if err := each(key, it); err != nil {
			return err
		}
	}
	return nil
}

// Floor implements recordstore.Peers.
func (d *folder) Floor() uint64 {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	return d.log.floor()
}

// Ring implements recordstore.Peers.
func (d *folder) Ring(session, key string) { d.peers.ring(session, key) }

// hear takes in what somebody has rung.
func (d *folder) hear(message string) {
	if owner, ok := strings.CutPrefix(message, brokenPrefix); ok {
		if store.CheckOwner(owner) == nil {
			d.broken(owner)
		}
		return
	}
	d.show(message)
}

// show sends the newest version of a record to those that watch it.
func (d *folder) show(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.watches[key]) == 0 {
		return
	}
	it, err := d.log.read(key)
	if err != nil {
		return // a waiter will find out when it looks
	}
	for ch := range d.watches[key] {
		select {
		case ch <- it:
		default:
		}
	}
}

// Close implements recordstore.Driver.
func (d *folder) Close() error {
	d.peers.close()
	d.log.close()
	return nil
}

// pushing is a folder on a system where processes can ring each other.
type pushing struct{ *folder }

var _ recordstore.Watcher = pushing{}

// Watch implements recordstore.Watcher. It begins with the newest version: what rang before the
// watch began would be lost.
func (d pushing) Watch(ctx context.Context, key string) (<-chan recordstore.Item, error) {
	ch := make(chan recordstore.Item, 16)
	d.mu.Lock()
	if d.watches[key] == nil {
		d.watches[key] = map[chan recordstore.Item]bool{}
	}
	d.watches[key][ch] = true
	d.mu.Unlock()
	d.show(key)
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if delete(d.watches[key], ch); len(d.watches[key]) == 0 {
			delete(d.watches, key)
		}
		close(ch)
	})
	return ch, nil
}

// isFolder reports whether there is a folder of locks at dir.
func isFolder(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, logDir))
	return err == nil
}
