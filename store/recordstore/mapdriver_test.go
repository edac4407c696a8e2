package recordstore_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// server keeps records in a map. With dates it dates them, with pushes its drivers are
// Watchers, and with forgets it deletes idle records.
type server struct {
	dates, pushes, forgets bool
	class                  store.Class

	mu      sync.Mutex
	writes  uint64
	deleted int
	records map[string]recordstore.Item
	watches map[string]map[chan recordstore.Item]bool
}

// driver returns one more driver of the server.
func (s *server) driver() recordstore.Driver {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records == nil {
		s.records, s.watches = map[string]recordstore.Item{}, map[string]map[chan recordstore.Item]bool{}
	}
	if s.pushes {
		return pushing{mapDriver{s}}
	}
	return mapDriver{s}
}

type mapDriver struct{ s *server }

func (d mapDriver) Describe() store.Caps {
	return store.Caps{Engine: "map", Reach: "process", Clock: "observed", Class: d.s.class}
}

func (d mapDriver) Read(ctx context.Context, key string) (recordstore.Item, error) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	return d.s.dated(d.s.itemLocked(key)), ctx.Err()
}

func (s *server) itemLocked(key string) recordstore.Item {
	it, ok := s.records[key]
	if !ok {
		it = recordstore.Item{Floor: s.writes, Version: "none since " + strconv.Itoa(s.deleted)}
	}
	return it
}

func (s *server) dated(it recordstore.Item) recordstore.Item {
	it.Now = time.Now()
	if !s.dates {
		it.Now, it.Written = time.Time{}, time.Time{}
	}
	return it
}

func (d mapDriver) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if have := d.s.itemLocked(key).Version; have != version {
		return "", fmt.Errorf("%w: %s", recordstore.ErrConflict, have)
	}
	d.s.writes++
	it := recordstore.Item{Value: value, Version: strconv.FormatUint(d.s.writes, 10), Written: time.Now()}
	d.s.records[key] = it
	if idle && d.s.forgets {
		delete(d.s.records, key)
		d.s.deleted++
	}
	for ch := range d.s.watches[key] {
		select {
		case ch <- d.s.dated(d.s.itemLocked(key)):
		default:
		}
	}
	return it.Version, nil
}

func (d mapDriver) List(ctx context.Context, each func(string, recordstore.Item) error) error {
	d.s.mu.Lock()
	all := maps.Clone(d.s.records)
	d.s.mu.Unlock()
	for key, it := range all {
		if err := each(key, d.s.dated(it)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (d mapDriver) Close() error { return nil }

type pushing struct{ mapDriver }

func (d pushing) Watch(ctx context.Context, key string) (<-chan recordstore.Item, error) {
	ch := make(chan recordstore.Item, 16)
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.s.watches[key] == nil {
		d.s.watches[key] = map[chan recordstore.Item]bool{}
	}
	d.s.watches[key][ch] = true
	context.AfterFunc(ctx, func() {
		d.s.mu.Lock()
		defer d.s.mu.Unlock()
		delete(d.s.watches[key], ch)
		close(ch)
	})
	return ch, nil
}
