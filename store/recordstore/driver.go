package recordstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

var (
	// ErrConflict is the error of Driver.Write if the key has another version than the
	// one to replace. The write has certainly not taken effect, and never will.
	ErrConflict = errors.New("recordstore: the record has another version")
	// ErrRefused is matched by errors of a Driver that the same request would meet again,
	// such as a missing right. The request has certainly not taken effect.
	ErrRefused = errors.New("recordstore: the engine refuses the request")
)

// Driver is one engine. Its methods are safe for concurrent use. Methods that take a context
// block until the engine has answered or the context ends. Every context has a deadline.
type Driver interface {
	// Describe returns what the store says of itself. Engine, Reach, Clock and Class have to
	// be set, and the bounds of TTLs where the engine has some. Class may be above
	// store.Efficiency only if an acknowledged write outlives every crash that the class
	// includes. It does not block, and may be called after Close.
	Describe() store.Caps

	// Read returns the newest version of a record: the last one for which Write returned, or
	// a later one. A record that does not exist is no error.
	Read(ctx context.Context, key string) (Item, error)

	// Write replaces the given version of a record by value and returns the new version. It
	// is atomic and never replaces another version. That also holds for the version that stands
	// for no record. Any error that does not match ErrConflict or ErrRefused leaves open whether the
	// write has taken effect, or will.
	//
	// With idle, nobody uses the lock any more. The driver may delete such a record later, once no
	// write that was begun before the deletion can still take effect, and if Item.Floor then
	// covers the record.
	Write(ctx context.Context, key string, value []byte, version string, idle bool) (next string, err error)

	// List calls each with the records that exist, in any order, until each returns an error,
	// which List then returns. Records that are written meanwhile may be left out.
	List(ctx context.Context, each func(key string, it Item) error) error

	// Close frees the resources of the driver. It deletes no record.
	Close() error
}

// Item is one version of a record.
type Item struct {
	// Value is what Write was given, or nil if there is no record.
	Value []byte
	// Version identifies this version, also that of a record that does not exist. A record
	// never has the same version twice.
	Version string
	// Written is when this version was written and Now when it was read, both by the same
	// clock. Now minus Written must not be more than the time that has passed since Write was
	// called: a driver whose clock can jump subtracts as much. Either is zero if the engine cannot
	// tell. See Dater.
	Written, Now time.Time
	// Floor, of a record that does not exist, is a number that the writes of this key have not
	// exceeded: the record that Write makes begins with it, and each further write adds one.
	// A driver that never deletes a record leaves it zero. Another one can return, for example,
	// the number of all writes that the engine has seen. It is at most MaxFloor.
	Floor uint64
	// Order, if it is not zero, rises with each version of a record. It is needed with Other.
	Order uint64
	// Other, if it is not nil, is what clients that know nothing of the record have made of the lock
	// since Value was written: the leases in Value are over. Value is nil and Floor is set if
	// no record was written yet.
	Other *Other
}

// Other is a lease of a client that uses what the engine has for locks itself, such as an object
// that names a leader, and knows nothing of records. It excludes all others.
type Other struct {
	// Owner is what that client calls itself. If it is empty, there is no such lease.
	Owner string
	// TTL is how long the lease lasts after Beat has changed, by the clock of a client that sees it.
	TTL time.Duration
	// Beat is another number after each renewal.
	Beat uint64
}

// MaxFloor is the largest Item.Floor.
const MaxFloor = 1<<42 - 1<<38

// Watcher is a Driver that pushes new versions of a record.
type Watcher interface {
	Driver

	// Watch sends versions of a record that are written from now on. They are hints: some may
	// be missing, come late, or twice. Watch closes the channel when ctx ends, and earlier if
	// it cannot go on.
	Watch(ctx context.Context, key string) (<-chan Item, error)
}

// Ringer is a Driver that can wake one client. If it is a Watcher, it need not push versions of
// which no client was told.
type Ringer interface {
	Driver

	// Session returns the name of this client, which no other client ever has, or "" if there is
	// none. The store notes it with each lease and place of this client.
	Session() string
	// Ring tells another client that a new version of a record concerns it: it has the lock, or,
	// among Peers, is the first in the queue. It is a hint that may be lost, and does not block.
	Ring(session, key string)
}

// Peers is a Ringer whose clients are processes of one machine. A crash that loses a version
// which one process has read also loses all later versions, whichever process wrote them.
type Peers interface {
	Ringer

	// Ended reports whether the client with a session has certainly ended, and whatever worked
	// under its leases with it. Its leases and places are then over. It does not block.
	Ended(session string) bool
	// Floor returns a number that never falls, such as the time. Every token is larger than
	// those of all leases that were granted when it was less, whatever becomes of the records: it
	// rises with each write that passes idle and deletes a record. It is at most MaxFloor.
	Floor() uint64
}

// Dater is a Driver whose Read sets Item.Written but not Item.Now, since reading the clock costs a
// request. Now returns the clock's time. It is called for records with entries that are
// new to this client.
type Dater interface {
	Driver
	Now(ctx context.Context) (time.Time, error)
}

// Bounded is a Driver whose records can only have so many bytes.
type Bounded interface {
	Driver
	// MaxLen returns the greatest length of a value. The store refuses holders and waiters that are
	// too many for it, in time: those that are there can always renew what they have.
	MaxLen() int
}

// Keyer is a Driver that chooses the keys of records itself.
type Keyer interface {
	Driver
	// Key returns the key of the record of a lock, in place of the function Key. Two names never
	// have the same one. It does not block.
	Key(name string) string
}

// ChangeWriter is a Driver that wants to know more of a write than Driver.Write says.
type ChangeWriter interface {
	Driver
	// WriteChange is called in place of Write.
	WriteChange(ctx context.Context, key string, value []byte, version string, c Change) (next string, err error)
}

// Change says what a write does to a lock.
type Change struct {
	// Idle is the argument of Driver.Write.
	Idle bool
	// Holder is the owner of the lease of a mutex, Several if the lock is in use as another
	// kind, and empty if there is no lease or it is broken. A lease whose TTL is over counts.
	Holder string
	// Other says that the lease of Item.Other goes on as it was. The other fields describe it.
	Other bool
	// TTL is that of the lease, or of the longest one, also if it is broken. It is zero if there is
	// none.
	TTL time.Duration
	// Renewed says that this write makes or renews a lease.
	Renewed bool
}

// Several is the Change.Holder of a lock that is no mutex. No owner has this value.
const Several = "several leases"

// Refusal returns an error that matches ErrRefused. Its text is only that of format and args, of
// which one may be wrapped with %w.
func Refusal(format string, args ...any) error { return refused{fmt.Errorf(format, args...)} }

type refused struct{ error }

func (e refused) Unwrap() error { return e.error }

func (refused) Is(target error) bool { return target == ErrRefused }
