package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// bells wakes waiters with LISTEN and NOTIFY. Each process has a channel, on which it listens while it
// waits for any lock. A step that gives a lock to a waiter of another process is followed by
// a NOTIFY with the key, in a transaction of its own that writes nothing: one that also wrote the step
// would make all such transactions of the server wait for each other's disk writes. What is
// sent is only a hint, since any role may send it.
type bells struct {
	r       *records
	session string

	mu        sync.Mutex
	wanted    map[string]map[*bell]bool // by key
	running   bool                      // there is a goroutine that listens, or begins to,
	listening bool                      // and it does
	reason    error                     // why nobody can listen, or nil
	tried     time.Time                 // when that was found out
}

// bell is one Watch.
type bell struct {
	rung  chan struct{} // holds a value once the key was rung, or the process listens
	ended chan struct{} // closed if the process listens no more
}

func newBells(r *records) *bells {
	return &bells{r: r, session: strings.ToLower(rand.Text()), wanted: map[string]map[*bell]bool{}}
}

// Session implements recordstore.Ringer.
func (r *records) Session() string {
	if r.bells == nil {
		return ""
	}
	return r.bells.session
}

// plainSession is the form of a session, whose length is at most 50.
var plainSession = regexp.MustCompile(`^[a-z0-9]+$`)

// Ring implements recordstore.Ringer.
func (r *records) Ring(session, key string) {
	if r.bells == nil || len(session) > 50 || !plainSession.MatchString(session) {
		return
	}
	r.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		conn, err := r.db.Conn(ctx)
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, "SELECT pg_catalog.pg_notify('leasehold_"+session+"', '"+key+"')"); err != nil && r.engine.fault(err).unusable {
			discard(conn)
		}
	})
}

// Watch implements recordstore.Watcher. It returns no channel if the server cannot wake waiters.
func (r *records) Watch(ctx context.Context, key string) (<-chan recordstore.Item, error) {
	if r.bells == nil {
		return nil, nil
	}
	on := r.bells.listen(key)
	if on == nil {
		return nil, nil
	}
	items := make(chan recordstore.Item, 1)
	go func() {
		defer close(items)
		defer r.bells.leave(key, on)
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

// listen returns a bell for a key, or nil if nobody can listen.
func (b *bells) listen(key string) *bell {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reason != nil && (errors.Is(b.reason, errNoPush) || time.Since(b.tried) < retryAfter) {
		return nil
	}
	on := &bell{rung: make(chan struct{}, 1), ended: make(chan struct{})}
	if b.wanted[key] == nil {
		b.wanted[key] = map[*bell]bool{}
	}
	b.wanted[key][on] = true
	if b.listening {
		on.rung <- struct{}{} // it may have been rung before
	}
	if !b.running {
		b.running = true
		b.r.spawn(b.run)
	}
	return on
}

func (b *bells) leave(key string, on *bell) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.wanted[key], on)
	if len(b.wanted[key]) == 0 {
		delete(b.wanted, key)
	}
}

// errNoPush is why waiters poll as long as the store lasts.
var errNoPush = errors.New("the server cannot wake waiters")

// turn is how long the process listens before it looks whether anybody wants it to. A connection that
// nobody wants is kept for a turn or two.
const turn = 10 * time.Second

// run listens until nobody wants it to for a while.
func (b *bells) run(ctx context.Context) {
	err := b.serve(ctx)
	if err == nil { // nobody wanted it, and another one may listen by now
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.listening, b.reason, b.tried = false, false, err, time.Now()
	if ctx.Err() == nil {
		b.r.o.Logger.Warn("the server does not wake waiters, so they look for locks now and then", "err", err)
	}
	for key, all := range b.wanted {
		for on := range all {
			close(on.ended)
		}
		delete(b.wanted, key)
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
	bounded, cancel := context.WithTimeout(ctx, b.r.o.Timeout)
	_, err = conn.ExecContext(bounded, "LISTEN leasehold_"+b.session)
	cancel()
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.listening = true
	for _, all := range b.wanted { // they may have been rung before
		for on := range all {
			on.ring()
		}
	}
	b.mu.Unlock()
	for idle := 0; ctx.Err() == nil; idle++ {
		if b.hasEnded(&idle) {
			return nil
		}
		if err := b.hear(ctx, conn); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// hasEnded ends the connection if nobody has wanted it in the last turns.
func (b *bells) hasEnded(idle *int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.wanted) > 0 {
		*idle = 0
	}
	if *idle < 2 {
		return false
	}
	b.running, b.listening = false, false
	return true
}

func (on *bell) ring() {
	select {
	case on.rung <- struct{}{}:
	default:
	}
}

func (b *bells) rung(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for on := range b.wanted[key] {
		on.ring()
	}
}

// hear waits for one notification, for a while.
func (b *bells) hear(ctx context.Context, conn *sql.Conn) error {
	bounded, cancel := context.WithTimeout(ctx, turn)
	defer cancel()
	return conn.Raw(func(of any) error {
		key, err := notification(bounded, of)
		b.rung(key)
		if bounded.Err() != nil {
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

// notification waits for a notification on a connection of pgx and returns what was sent.
func notification(ctx context.Context, of any) (sent string, err error) {
	v := result(reflect.ValueOf(of).MethodByName("Conn"))
	if v.IsValid() {
		v = v.MethodByName("WaitForNotification")
	}
	if !v.IsValid() || v.Type().NumIn() != 1 || v.Type().NumOut() != 2 {
		return "", errNoPush
	}
	out := v.Call([]reflect.Value{reflect.ValueOf(ctx)})
	if n := out[0]; n.Kind() == reflect.Pointer && !n.IsNil() {
		sent = n.Elem().FieldByName("Payload").String()
	}
	err, _ = out[1].Interface().(error)
	return sent, err
}
