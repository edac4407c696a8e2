package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// bells wakes waiters with LISTEN and NOTIFY. Each lock has a channel. A step that gives the lock to
// a waiter of another process rings it, in a transaction of its own that writes nothing: one that
// also wrote the step would make all such transactions of the server wait for each other's
// disk writes. What is sent is only a hint, since any role may send it.
//
// The process listens on one connection while it waits for any lock.
type bells struct {
	r *records

	mu        sync.Mutex
	wanted    map[string]map[*bell]bool // by channel
	interrupt context.CancelFunc        // of the pause between two notifications; nil: nobody listens
	reason    error                     // why nobody can listen, or nil
	tried     time.Time                 // when that was found out
}

// bell is one Watch.
type bell struct {
	rung  chan struct{} // holds a value once the channel was rung, or is listened to
	ended chan struct{} // closed if nobody listens any more
}

func newBells(r *records) *bells { return &bells{r: r, wanted: map[string]map[*bell]bool{}} }

// channel returns the name of the channel of a record.
func (b *bells) channel(key string) string {
	h := sha256.Sum256([]byte(b.r.o.Schema + "." + key))
	return "leasehold_" + hex.EncodeToString(h[:16])
}

// ring wakes the waiters for a record. It takes a short time at most: they look now and then, too.
func (b *bells) ring(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := b.r.db.Conn(ctx)
	if err != nil {
		return
	}
	if _, err := conn.ExecContext(ctx, "SELECT pg_catalog.pg_notify('"+b.channel(key)+"', '')"); err != nil && b.r.engine.fault(err).unusable {
		discard(conn)
	}
	conn.Close()
}

// Watch implements recordstore.Watcher. It returns no channel if the server cannot wake waiters.
func (r *records) Watch(ctx context.Context, key string) (<-chan recordstore.Item, error) {
	if r.bells == nil {
		return nil, nil
	}
	on := r.bells.listen(r.bells.channel(key))
	if on == nil {
		return nil, nil
	}
	items := make(chan recordstore.Item, 1)
	go func() {
		defer close(items)
		defer r.bells.leave(r.bells.channel(key), on)
		for {
			select {
			case <-on.rung:
			case <-on.ended:
				return
			case <-ctx.Done():
				return
			}
			bounded, cancel := context.WithTimeout(ctx, r.o.Timeout)
			it, err := r.Read(bounded, key)
			cancel()
			if err != nil {
				continue
			}
			select {
			case items <- it:
			case <-ctx.Done():
				return
			}
		}
	}()
	return items, nil
}

// retryAfter is how long waiters look for locks before it is tried again to listen.
const retryAfter = 10 * time.Second

// listen returns a bell for a channel, or nil if nobody can listen.
func (b *bells) listen(channel string) *bell {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reason != nil && (errors.Is(b.reason, errNoPush) || time.Since(b.tried) < retryAfter) {
		return nil
	}
	on := &bell{rung: make(chan struct{}, 1), ended: make(chan struct{})}
	if b.wanted[channel] == nil {
		b.wanted[channel] = map[*bell]bool{}
	}
	b.wanted[channel][on] = true
	if b.interrupt != nil {
		b.interrupt()
	} else {
		b.interrupt = func() {}
		b.r.spawn(b.run)
	}
	return on
}

func (b *bells) leave(channel string, on *bell) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.wanted[channel], on)
	if len(b.wanted[channel]) == 0 {
		delete(b.wanted, channel)
		if b.interrupt != nil && len(b.wanted) == 0 {
			b.interrupt()
		}
	}
}

// errNoPush is why waiters poll as long as the store lasts.
var errNoPush = errors.New("the server cannot wake waiters")

// lingers is how long a connection is kept on which nobody listens.
const lingers = 10 * time.Second

// run listens until nobody wants it to for a while.
func (b *bells) run(ctx context.Context) {
	err := b.serve(ctx)
	if err == nil { // nobody wanted it, and another one may listen by now
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.interrupt, b.reason, b.tried = nil, err, time.Now()
	if ctx.Err() == nil {
		b.r.o.Logger.Warn("the server does not wake waiters, so they look for locks now and then", "err", err)
	}
	for channel, all := range b.wanted {
		for on := range all {
			close(on.ended)
		}
		delete(b.wanted, channel)
	}
}

func (b *bells) serve(ctx context.Context) error {
	conn, err := b.r.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer discard(conn)
	if err := b.check(ctx, conn); err != nil {
		return err
	}
	heard := map[string]bool{}
	for idle := time.Now(); ctx.Err() == nil; {
		b.mu.Lock()
		wait, interrupt := context.WithTimeout(ctx, lingers)
		b.interrupt = interrupt
		var fresh, gone []string
		for channel := range b.wanted {
			if !heard[channel] {
				fresh = append(fresh, channel)
			}
		}
		for channel := range heard {
			if b.wanted[channel] == nil {
				gone = append(gone, channel)
			}
		}
		if len(b.wanted) > 0 {
			idle = time.Now()
		} else if time.Since(idle) >= lingers {
			b.interrupt = nil
			b.mu.Unlock()
			interrupt()
			return nil
		}
		b.mu.Unlock()
		err := b.sync(ctx, conn, heard, fresh, gone)
		if err == nil {
			err = b.hear(wait, conn)
		}
		interrupt()
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sync begins and ends to listen to channels.
func (b *bells) sync(ctx context.Context, conn *sql.Conn, heard map[string]bool, fresh, gone []string) error {
	ctx, cancel := context.WithTimeout(ctx, b.r.o.Timeout)
	defer cancel()
	for _, channel := range gone {
		if _, err := conn.ExecContext(ctx, "UNLISTEN "+channel); err != nil {
			return err
		}
		delete(heard, channel)
	}
	for _, channel := range fresh {
		if _, err := conn.ExecContext(ctx, "LISTEN "+channel); err != nil {
			return err
		}
		heard[channel] = true
		b.rung(channel) // it may have been rung before
	}
	return nil
}

func (b *bells) rung(channel string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for on := range b.wanted[channel] {
		select {
		case on.rung <- struct{}{}:
		default:
		}
	}
}

// hear waits for one notification, or until ctx ends.
func (b *bells) hear(ctx context.Context, conn *sql.Conn) error {
	return conn.Raw(func(of any) error {
		channel, err := notification(ctx, of)
		if channel != "" {
			b.rung(channel)
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
}

// check returns why the server cannot wake waiters on a connection.
func (b *bells) check(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, b.r.o.Timeout)
	defer cancel()
	if !direct(ctx, conn) {
		return fmt.Errorf("%w: something is between this process and the server, such as a pooler, or the driver is not pgx", errNoPush)
	}
	return nil
}

// why returns why waiters poll, or nothing.
func (b *bells) why(ctx context.Context) string {
	conn, err := b.r.db.Conn(ctx)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	if err := b.check(ctx, conn); err != nil {
		return err.Error()
	}
	return ""
}

// notification waits for a notification on a connection of pgx and returns its channel.
func notification(ctx context.Context, of any) (channel string, err error) {
	v := result(reflect.ValueOf(of).MethodByName("Conn"))
	if v.IsValid() {
		v = v.MethodByName("WaitForNotification")
	}
	if !v.IsValid() || v.Type().NumIn() != 1 || v.Type().NumOut() != 2 {
		return "", errNoPush
	}
	out := v.Call([]reflect.Value{reflect.ValueOf(ctx)})
	if n := out[0]; n.Kind() == reflect.Pointer && !n.IsNil() {
		channel = n.Elem().FieldByName("Channel").String()
	}
	err, _ = out[1].Interface().(error)
	return channel, err
}
