package recordstore_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// table is an engine: it keeps values by key, and replaces one if its version is still the one
// that the client has read.
type table struct {
	mu     sync.Mutex
	values map[string]recordstore.Item
}

// tableDriver is one client of a table.
type tableDriver struct{ *table }

func (d tableDriver) Describe() store.Caps {
	return store.Caps{Engine: "table", Reach: "process", Clock: "observed", Class: store.Efficiency}
}

func (d tableDriver) Read(ctx context.Context, key string) (recordstore.Item, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	it := d.values[key] // the zero Item says that there is no record
	it.Now = time.Now()
	return it, ctx.Err()
}

func (d tableDriver) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	have := d.values[key].Version
	if have != version {
		return "", fmt.Errorf("%w: %s", recordstore.ErrConflict, have)
	}
	n, _ := strconv.Atoi(have)
	next := strconv.Itoa(n + 1)
	if d.values == nil {
		d.values = map[string]recordstore.Item{}
	}
	d.values[key] = recordstore.Item{Value: value, Version: next, Written: time.Now()}
	return next, nil
}

func (d tableDriver) List(ctx context.Context, each func(string, recordstore.Item) error) error {
	d.mu.Lock()
	all := maps.Clone(d.values)
	d.mu.Unlock()
	for key, it := range all {
		it.Now = time.Now()
		if err := each(key, it); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (d tableDriver) Close() error { return nil }

// An engine is a Driver. New makes a store of it, with all kinds of locks, fencing tokens and a
// fair queue.
func Example() {
	st := recordstore.New(tableDriver{new(table)}, nil)
	defer st.Close()
	err := leasehold.New(st, nil).Mutex("invoices/42").Do(context.Background(), func(ctx context.Context, l *leasehold.Lease) error {
		fmt.Println("token", l.Token())
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// token 1
}

// The suite says what is wrong with an engine.
func TestConformanceOfTheExample(t *testing.T) {
	t.Parallel()
	var engine *table
	second := func(t *testing.T) *store.Store {
		return recordstore.New(tableDriver{engine}, &recordstore.Options{Poll: 5 * time.Millisecond})
	}
	storetest.Run(t, func(t *testing.T) *store.Store {
		engine = new(table)
		return second(t)
	}, storetest.Options{Second: second})
}
